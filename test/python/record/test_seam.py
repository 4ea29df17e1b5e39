"""`kperfir._native.record`: constants, array ownership, and arguments that are wrong."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from kperfir._native import record

from kperfir.capture import reference
from kperfir.capture.decode import RawBuffer, decode_buffer
from kperfir.capture.layout_json import LAYOUT_VERSION, MAX_FRAMES
from kperfir.errors import CaptureError
from support.synthetic import CaptureShape, matmul_plan


def test_constants_are_those_of_the_reference() -> None:
    assert record.CTA_MAGIC == reference.MAGIC
    assert record.TAG_BASE == reference.TAG_BASE
    assert record.CTA_HEADER_WORDS == reference.HEADER_WORDS
    assert record.SEGMENT_HEADER_WORDS == reference.SEGMENT_HEADER_WORDS
    assert record.LAYOUT_VERSION == LAYOUT_VERSION
    assert record.MAX_FRAMES == MAX_FRAMES
    assert record.segment_offset(2, 64) == 64 + 2 * 68 * 4


def test_columns_outlive_the_decoder() -> None:
    plan = matmul_plan(CaptureShape())
    layout = plan.layout(strategy="saturate", words_per_warp=64)
    raw = RawBuffer(np.zeros(1, np.uint32), np.zeros(layout.cta_bytes, np.uint8), (1, 1, 1))
    started = decode_buffer(layout, raw).ctas["started"]
    gc.collect()
    assert started.tolist() == [0]


def test_decode_refuses_a_buffer_of_another_size() -> None:
    layout = matmul_plan(CaptureShape()).layout(strategy="saturate", words_per_warp=64)
    for size in (0, layout.cta_bytes - 1, layout.cta_bytes + 4, 2 * layout.cta_bytes):
        raw = RawBuffer(np.zeros(1, np.uint32), np.zeros(size, np.uint8), (1, 1, 1))
        with pytest.raises(CaptureError, match="1 CTAs of") as caught:
            decode_buffer(layout, raw)
        assert caught.value.code == "size-mismatch"


def test_decoder_refuses_a_layout_that_is_not_filled_in() -> None:
    decoder = record.DecoderLayout()
    with pytest.raises(ValueError, match="layout: number of warps"):
        record.Decoder(decoder)


def test_decode_says_which_cta_when_it_is_not_of_the_grid() -> None:
    layout = matmul_plan(CaptureShape()).layout(strategy="saturate", words_per_warp=64)
    words = np.zeros((3, layout.cta_bytes // 4), np.uint32)
    words[:, 0], words[:, 1], words[:, 2] = record.CTA_MAGIC, layout.hash, (0, 1, 1)
    raw = RawBuffer(np.arange(3, dtype=np.uint32), words.view(np.uint8).reshape(-1), (3, 1, 1))
    with pytest.raises(CaptureError, match=r"CTA 2.*\n.*ctaid \(1, 0, 0\)"):
        decode_buffer(layout, raw)
