"""From profile buffers to decoded columns: the layout, the .kpf file, the decoder and its reference."""
