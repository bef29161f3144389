package backend

// AnalyticsQuery selects a report. The backend chooses defaults for empty fields. Set either Range, or From and To in
// RFC 3339.
type AnalyticsQuery struct {
	Range, From, To, Interval string
}

// UsageQuery selects a report on calls through the AI gateway. The backend chooses defaults for empty fields.
type UsageQuery struct {
	Range, Interval string
}
