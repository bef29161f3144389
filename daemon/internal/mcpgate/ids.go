package mcpgate

import (
	"encoding/json"
	"strconv"
)

// cancelled is the notification that cancels a call.
const cancelled = "notifications/cancelled"

// maxID is the largest integer up to which the SDK's float64 is exact.
const maxID = 1 << 53

// validID reports whether raw can identify a call: it is a string, or an integer without fraction or exponent. The SDK
// would accept any number and respond with a rounded one. service-mcp applies the same rule.
func validID(raw json.RawMessage) bool {
	if len(raw) > 0 && raw[0] == '"' {
		return true
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return err == nil && n >= -maxID && n <= maxID
}

// namesValidRequest reports whether the params of a cancellation omit the request ID or contain a valid one.
func namesValidRequest(params json.RawMessage) bool {
	id, present := jsonField(params, "requestId")
	return !present || validID(id)
}

// jsonField returns a member of a JSON object. As in the SDK, names are case-sensitive, and the last of several members
// with the same name is used.
func jsonField(object json.RawMessage, name string) (value json.RawMessage, present bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return nil, false
	}
	value, present = members[name]
	return value, present
}
