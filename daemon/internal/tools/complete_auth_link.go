package tools

import (
	"context"
	"encoding/json"
	"time"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/link"
)

type completeAuthLink struct {
	links   Links
	browser Browser
	// retry repeats the call that needed the link.
	retry   func(ctx context.Context, c call) Result
	retries *retries
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
	LinkedAt      string          `json:"linkedAt" format:"date-time"`
	ExpiresAt     *string         `json:"expiresAt" jsonschema:"null: the link does not expire." format:"date-time"`
	AuthTokenFile authTokenFile   `json:"authTokenFile"`
	PollCount     int             `json:"pollCount"`
	Retried       json.RawMessage `json:"retried"`
	RetriedTool   string          `json:"retriedTool,omitempty" jsonschema:"The tool that returned retried."`
	Summary       string          `json:"summary"`
}

type authTokenFile struct {
	Path    string  `json:"path"`
	Written bool    `json:"written"`
	Error   *string `json:"error"`
}

func (t completeAuthLink) definition() definition {
	return define(Tool{
		Name: "completeAuthLink", Title: "Wait for the account link",
		Waits:       true,
		Annotations: Annotations{Idempotent: true}, AboutAccount: true,
		// The schema has no limits. A validating client would reject out-of-range values, which are clamped here
		// instead.
		OutputSchema: answersOf[linkedAnswer](required("linked", "tier", "accountId", "linkedAt", "expiresAt",
			"authTokenFile", "pollCount", "retried", "summary"),
			on("authTokenFile", mustHave("path", "written", "error")),
			on("pollCount", notNegative),
			on("retried", nullable, says("The result of the call that needed the link; null if there was none.")),
		),
	}, t.run,
		required("deviceCode"),
		on("maxWaitSeconds", byDefault(600), says("1 to 600; less than your client's own limit for a call.")),
		on("pollIntervalSeconds", byDefault(5), says("1 to 30.")),
	)
}

func (t completeAuthLink) run(ctx context.Context, c call, args completeAuthLinkArgs) (any, error) {
	if args.DeviceCode == "" {
		return nil, missing("deviceCode", "Pass deviceCode of the auth_required answer; call createSimulatorSession to "+
			"get one.")
	}
	wait := link.Wait{
		Max:      time.Duration(clamp(args.MaxWaitSeconds, 600, 1, 600)) * time.Second,
		Interval: time.Duration(clamp(args.PollIntervalSeconds, 5, 1, 30)) * time.Second,
	}
	progress := newProgress(c.io, wait.Max)
	wait.OnPoll = progress.onPoll()
	wait.OpenPage = func(ctx context.Context, page string) bool { return openPage(ctx, t.browser, c.who, page) }
	var outcome link.Outcome
	var err error
	progress.during(ctx, waiting, func() { outcome, err = t.links.Complete(ctx, c.who, args.DeviceCode, wait) })
	if err != nil {
		return nil, err
	}
	return t.answer(ctx, args.DeviceCode, outcome), nil
}

func (t completeAuthLink) answer(ctx context.Context, deviceCode string, o link.Outcome) linkedAnswer {
	answer := linkedAnswer{
		Linked: true, Tier: o.Tier, AccountID: o.AccountID, LinkedAt: stamp(o.LinkedAt), ExpiresAt: stampOf(o.ExpiresAt),
		AuthTokenFile: authTokenFile{Path: o.File.Path, Written: o.File.Written}, PollCount: o.PollCount,
	}
	if o.File.Error != "" {
		answer.AuthTokenFile.Error = &o.File.Error
	}
	answer.RetriedTool, answer.Retried = t.retries.of(ctx, deviceCode, func() (string, json.RawMessage) {
		return t.repeat(ctx, deviceCode)
	})
	answer.Summary = linkedSummary(o, answer.RetriedTool)
	return answer
}

// repeat repeats the call that needed the link.
func (t completeAuthLink) repeat(ctx context.Context, deviceCode string) (tool string, answer json.RawMessage) {
	gated, ok := t.links.TakeGated(deviceCode)
	if !ok {
		return "", null
	}
	result := t.retry(caller.With(ctx, gated.Caller), call{tool: gated.Tool, args: gated.Args, who: gated.Caller})
	return gated.Tool, result.Structured
}
