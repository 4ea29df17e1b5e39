"""Reports of a timeline: the data that every report shows (`model`), and the page that shows them (`html`)."""
