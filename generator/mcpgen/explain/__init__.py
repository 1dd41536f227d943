"""The kinds of messages on the wire and the revisions that accept them: `mcpgen explain`,
`validate`.

`recordings` reads messages, `revision` holds what a revision says of each, `violations` names the
place that breaks a schema, `repair` gives the nearest valid form, and `report` shows all of it.
"""
