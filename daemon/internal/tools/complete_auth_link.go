package tools

import (
	"context"
	"encoding/json"
	"time"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/link"
)

const completeAuthLinkText = `Waits until the person has approved the account link that a tool asked for with status "auth_required", ` +
	`saves the link, repeats the call that had needed it and returns that call's answer as "retried". ` +
	`Call it right after you have shown the person userCode and verificationUrl and asked them to compare the code. ` +
	`Do not call it without a deviceCode from auth_required; to get one, call createSimulatorSession. ` +
	`It may be called again with the same deviceCode: after auth_timeout or when your client cut the call, the waiting went on and nothing is lost. ` +
	`To see whether an account is linked, use whoAmI.`

type completeAuthLink struct {
	links linkCompleter
	// retry runs the call that had asked for the link.
	retry   func(ctx context.Context, c call) Result
	retries *retries
}

type linkCompleter interface {
	Complete(ctx context.Context, who caller.Caller, deviceCode string, wait link.Wait) (link.Outcome, error)
	TakeGated(deviceCode string) (link.GatedCall, bool)
}

type completeAuthLinkArgs struct {
	DeviceCode          string   `json:"deviceCode"`
	MaxWaitSeconds      *integer `json:"maxWaitSeconds"`
	PollIntervalSeconds *integer `json:"pollIntervalSeconds"`
}

type linkedAnswer struct {
	Linked        bool            `json:"linked"`
	Tier          string          `json:"tier"`
	AccountID     string          `json:"accountId"`
	LinkedAt      string          `json:"linkedAt"`
	ExpiresAt     *string         `json:"expiresAt"`
	AuthTokenFile authTokenFile   `json:"authTokenFile"`
	PollCount     int             `json:"pollCount"`
	Retried       json.RawMessage `json:"retried"`
	Summary       string          `json:"summary"`
}

type authTokenFile struct {
	Path    string  `json:"path"`
	Written bool    `json:"written"`
	Error   *string `json:"error"`
}

func (t completeAuthLink) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "completeAuthLink", Title: "Wait for the account link", Description: completeAuthLinkText,
		Waits:       true,
		Annotations: Annotations{Idempotent: true}, AboutAccount: true,
		// No minimum or maximum: the values are clamped, and a client that validates would refuse them before.
		InputSchema: inputSchema(`
			"deviceCode":{"type":"string","description":"deviceCode of the auth_required answer."},
			"maxWaitSeconds":{"type":"integer","default":600,"description":"How long to wait, 1 to 600 seconds; other values are clamped. Use less than your client's own limit for a call."},
			"pollIntervalSeconds":{"type":"integer","default":5,"description":"Seconds between polls, 1 to 30; other values are clamped, and a larger interval of the backend wins."}`,
			`"deviceCode"`),
		OutputSchema: outputSchema(`
			"linked":{"type":"boolean"},
			"tier":{"type":"string"},
			"accountId":{"type":"string"},
			"linkedAt":{"type":"string","format":"date-time"},
			"expiresAt":{"anyOf":[{"type":"string","format":"date-time"},{"type":"null"}],"description":"null: the link does not expire."},
			"authTokenFile":{"type":"object","properties":{"path":{"type":"string"},"written":{"type":"boolean"},"error":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["path","written","error"]},
			"pollCount":{"type":"integer","minimum":0},
			"retried":{"anyOf":[{"type":"object"},{"type":"null"}],"description":"The answer of the call that had needed the link; null when there was none."},`+
			summaryProperty, `"linked","tier","accountId","linkedAt","expiresAt","authTokenFile","pollCount","retried","summary"`, false),
	}}
}

func (t completeAuthLink) run(ctx context.Context, c call) (any, error) {
	var args completeAuthLinkArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	if args.DeviceCode == "" {
		return nil, &Error{Code: CodeInvalidArguments, Message: `argument "deviceCode" is missing`, FixHint: "pass deviceCode of the auth_required answer; call createSimulatorSession to get one"}
	}
	wait := link.Wait{
		Max:      time.Duration(clamp(args.MaxWaitSeconds, 600, 1, 600)) * time.Second,
		Interval: time.Duration(clamp(args.PollIntervalSeconds, 5, 1, 30)) * time.Second,
	}
	meter := newMeter(c.io, wait.Max)
	wait.OnPoll = meter.poll()
	var outcome link.Outcome
	var err error
	meter.during(ctx, waiting, func() { outcome, err = t.links.Complete(ctx, c.who, args.DeviceCode, wait) })
	if err != nil {
		return nil, err
	}
	return t.answer(ctx, args.DeviceCode, outcome), nil
}

func (t completeAuthLink) answer(ctx context.Context, deviceCode string, o link.Outcome) linkedAnswer {
	answer := linkedAnswer{
		Linked: true, Tier: o.Tier, AccountID: o.AccountID, LinkedAt: stamp(o.LinkedAt), ExpiresAt: stampOf(o.ExpiresAt),
		AuthTokenFile: authTokenFile{Path: o.File.Path, Written: o.File.Written}, PollCount: o.PollCount, Retried: null,
		Summary: "The account is linked. Call createSimulatorSession again: it now uses the new token.",
	}
	if o.File.Error != "" {
		answer.AuthTokenFile.Error = &o.File.Error
		answer.Summary = "The account is linked until the daemon ends, because the link could not be saved: " + o.File.Error + ". Call createSimulatorSession again: it now uses the new token."
	}
	if o.RevokeURL != "" {
		answer.Summary += " The backend could not be asked to revoke the token that this link replaced; the person can revoke it at " + o.RevokeURL + "."
	}
	var tool string
	tool, answer.Retried = t.retries.of(ctx, deviceCode, func() (string, json.RawMessage) { return t.repeat(ctx, deviceCode) })
	if tool != "" {
		answer.Summary += ` The call of ` + tool + ` that had needed it was repeated; its answer is in "retried".`
	}
	return answer
}

// repeat makes the call that had asked for the link.
func (t completeAuthLink) repeat(ctx context.Context, deviceCode string) (tool string, answer json.RawMessage) {
	gated, ok := t.links.TakeGated(deviceCode)
	if !ok {
		return "", null
	}
	result := t.retry(caller.With(ctx, gated.Caller), call{tool: gated.Tool, args: gated.Args, who: gated.Caller})
	return gated.Tool, result.Structured
}
