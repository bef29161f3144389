package backend

// TelemetryReceipt is a backend's answer to a batch of usage events: those that count, those that had come before, and
// those that it does not take.
type TelemetryReceipt struct{ Accepted, Duplicates, Rejected int }
