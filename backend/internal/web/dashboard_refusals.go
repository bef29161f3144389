package web

import "github.com/service-dev/service/backend/internal/usage"

// stepLink is a link to the page for a next step.
type stepLink struct{ Href, Label string }

var stepLinks = map[usage.Place]stepLink{
	usage.AtCredit:   {creditPath + "#topup", "Credit"},
	usage.AtSettings: {settingsPath, "Settings"},
	usage.AtCaps:     {"#caps", "Caps"},
	usage.AtAttest:   {"#attestation", "Attestation"},
	usage.AtPayer:    {"#payer", "What pays"},
	usage.AtModels:   {"#models", "Models"},
	usage.AtRequests: {"/docs/managed-gateway#requests", "Requests"},
}
