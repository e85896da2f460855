package rulefile

import _ "embed"

//go:embed schema.json
var schema string

// Schema returns the JSON Schema (draft 7) of rule files, with which editors complete and check them. What it refuses
// Parse refuses too. Parse also sees what no schema can: names used twice, patterns in conflict, limits that do not fit.
func Schema() []byte { return []byte(schema) }
