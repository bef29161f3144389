package tools

import "context"

type whoAmI struct{ accounts Accounts }

type whoAmIAnswer struct {
	InstallID  string  `json:"installId"`
	Linked     bool    `json:"linked"`
	State      string  `json:"state"`
	AccountID  *string `json:"accountId"`
	Tier       *string `json:"tier"`
	LinkedAt   *string `json:"linkedAt" format:"date-time"`
	ExpiresAt  *string `json:"expiresAt" jsonschema:"null: the link does not expire, or there is none." format:"date-time"`
	BackendURL string  `json:"backendUrl"`
	Summary    string  `json:"summary"`
}

func (t whoAmI) definition() definition {
	return define(Tool{
		Name: "whoAmI", Title: "Show the linked account", AboutAccount: true,
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
		OutputSchema: answersOf[whoAmIAnswer](required("installId", "linked", "state", "accountId", "tier", "linkedAt",
			"expiresAt", "backendUrl", "summary"),
			on("state", oneOf("linked", "not_linked", "revoked", "expired", "corrupt", "other_backend")),
			on("backendUrl", says("The backend that calls go to; embedded:ID is the one in this install.")),
		),
	}, t.run)
}

func (t whoAmI) run(ctx context.Context, _ call, _ struct{}) (any, error) {
	current := t.accounts.Link(ctx)
	answer := whoAmIAnswer{
		InstallID: t.accounts.InstallID(), Linked: current.Linked(), State: string(current.State),
		BackendURL: t.accounts.BackendURL(ctx),
		LinkedAt:   stampOrNull(current.LinkedAt), ExpiresAt: stampOf(current.ExpiresAt),
	}
	if current.AccountID != "" {
		answer.AccountID = &current.AccountID
	}
	if answer.Linked {
		answer.Tier = &current.Tier
		answer.Summary = "Account " + current.AccountID + " is linked."
		return answer, nil
	}
	answer.Summary = "No account is linked; createSimulatorSession and the other account tools ask for one."
	if reason, why := reasonOf(current.State); reason != "not_linked" {
		answer.Summary = "No usable account link: " + why + "."
	}
	return answer, nil
}
