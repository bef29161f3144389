package backendapi

// Telemetry. POST PathTelemetry accepts a proto/telemetry.Batch with the header X-Service-Install-Id and never with a
// bearer token, so that usage is not tied to an account. DELETE PathTelemetry with the same header erases the
// install's data.

// TelemetryReceipt is the response to an upload, with status 202. Do not send rejected events again, because they are
// not in the list of known events.
type TelemetryReceipt struct {
	Accepted   int64 `json:"accepted" check:"present,unsigned"`
	Duplicates int64 `json:"duplicates" check:"present,unsigned"`
	Rejected   int64 `json:"rejected" check:"present,unsigned"`
}

// TelemetryPurged is the response to an erasure, with status 200.
type TelemetryPurged struct {
	Deleted int64 `json:"deleted" check:"present,unsigned"`
}
