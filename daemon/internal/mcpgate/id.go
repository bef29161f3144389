package mcpgate

import (
	"encoding/json"
	"strconv"
)

// cancelled is the notification that names a call which the client does not want any more.
const cancelled = "notifications/cancelled"

// maxID is the largest number that survives the SDK's way over float64.
const maxID = 1 << 53

// validID tells whether raw can name a call: a string, or an integer without fraction or exponent. The SDK would take
// any number and answer to a rounded one. The shim tracks the same ids.
func validID(raw json.RawMessage) bool {
	if len(raw) > 0 && raw[0] == '"' {
		return true
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return err == nil && n >= -maxID && n <= maxID
}

// member returns a member of a JSON object; the last of equal names wins, and their case counts, as in the SDK.
func member(object json.RawMessage, name string) (value json.RawMessage, present bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return nil, false
	}
	value, present = members[name]
	return value, present
}
