"""Reports of a timeline: what they say (`model`), as a page (`html`), in few words (`agent`).

report.schema.json is the JSON Schema of `kperfir report --json`.
"""
