"""The kinds of messages on the wire and the revisions that accept them: `mcpgen explain`,
`validate`.

`recordings` reads messages, `conversation` pairs requests with responses, `revision` judges each
message, `violations` names the place that breaks a schema, `repair` finds the nearest valid form,
and `command` prints the results.
"""
