package tools

import "context"

const whoAmIText = `Tells which install this is, whether an account is linked, which one, and which backend is used. ` +
	`It answers at once from what is known here, needs no account and never shows the token. ` +
	`Use it to explain to the person how things stand, or to find out why a call asks for a link. ` +
	`There is no need to call it before other tools: those that need an account say so themselves. ` +
	`To link an account, call createSimulatorSession and then completeAuthLink.`

type whoAmI struct{ accounts Accounts }

type whoAmIAnswer struct {
	InstallID  string  `json:"installId"`
	Linked     bool    `json:"linked"`
	State      string  `json:"state"`
	AccountID  *string `json:"accountId"`
	Tier       *string `json:"tier"`
	LinkedAt   *string `json:"linkedAt"`
	ExpiresAt  *string `json:"expiresAt"`
	BackendURL string  `json:"backendUrl"`
	Summary    string  `json:"summary"`
}

func (t whoAmI) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "whoAmI", Title: "Show the linked account", Description: whoAmIText, AboutAccount: true,
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
		InputSchema: inputSchema("", ""),
		OutputSchema: outputSchema(`
			"installId":{"type":"string"},
			"linked":{"type":"boolean"},
			"state":{"type":"string","enum":["linked","not_linked","revoked","expired","corrupt","other_backend"]},
			"accountId":{"anyOf":[{"type":"string"},{"type":"null"}]},
			"tier":{"anyOf":[{"type":"string"},{"type":"null"}]},
			"linkedAt":{"anyOf":[{"type":"string","format":"date-time"},{"type":"null"}]},
			"expiresAt":{"anyOf":[{"type":"string","format":"date-time"},{"type":"null"}],"description":"null: the link does not expire, or there is none."},
			"backendUrl":{"type":"string","description":"Where calls go; embedded: followed by an id is the backend inside this install."},`+
			summaryProperty, `"installId","linked","state","accountId","tier","linkedAt","expiresAt","backendUrl","summary"`, false),
	}}
}

func (t whoAmI) run(ctx context.Context, c call) (any, error) {
	if err := decode(c.args, &struct{}{}); err != nil {
		return nil, err
	}
	current := t.accounts.Link(ctx)
	answer := whoAmIAnswer{
		InstallID: t.accounts.InstallID(), Linked: current.Linked(), State: string(current.State), BackendURL: t.accounts.BackendURL(ctx),
		LinkedAt: stampOrNull(current.LinkedAt), ExpiresAt: stampOf(current.ExpiresAt),
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
