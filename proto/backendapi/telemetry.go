package backendapi

// Telemetry. POST PathTelemetry takes a proto/telemetry.Batch with the header X-Service-Install-Id and never a bearer
// token: usage is not tied to an account. DELETE PathTelemetry with the same header erases the data of that install.

// TelemetryReceipt is the answer to an upload, 202. Rejected events are not on the list of events; sending them again
// is useless.
type TelemetryReceipt struct {
	Accepted   int64 `json:"accepted"`
	Duplicates int64 `json:"duplicates"`
	Rejected   int64 `json:"rejected"`
}

// TelemetryPurged is the answer to an erasure, 200.
type TelemetryPurged struct {
	Deleted int64 `json:"deleted"`
}
