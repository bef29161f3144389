package tools

import (
	"context"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/link"
	"github.com/service-dev/service/internal/problem"
)

// gatedWork is the part of a tool that runs after the caller's backend and credential are known.
type gatedWork func(ctx context.Context, target backend.Target) (any, error)

// gate finds the caller's link for a tool that needs an account, or asks the user to link one.
type gate struct {
	links   Links
	browser Browser
}

// statusAuthRequired is the status and the error code of an answer that asks for a link.
const statusAuthRequired = "auth_required"

// AuthRequired is the answer of a gated tool if there is no link. It is a step of the flow, not an error.
type AuthRequired struct {
	Status string `json:"status"`
	linkRequest
	SignInWord string `json:"signInWord,omitempty"`
	Code       string `json:"code"`
	Message    string `json:"message"`
	Retryable  bool   `json:"retryable"`
	FixHint    string `json:"fixHint"`
	Summary    string `json:"summary"`
}

// linkRequest contains the data that the user needs to link an account. The output schema of every gated tool has these
// properties.
type linkRequest struct {
	Reason           string `json:"reason" jsonschema:"With auth_required: what is wrong with the link."`
	DeviceCode       string `json:"deviceCode" jsonschema:"With auth_required: for completeAuthLink, not for the user."`
	UserCode         string `json:"userCode" jsonschema:"With auth_required: show it to the user, to compare."`
	VerificationURL  string `json:"verificationUrl" jsonschema:"With auth_required: show it to the user, who opens it."`
	ExpiresInSeconds int64  `json:"expiresInSeconds" jsonschema:"With auth_required: how long the code is still valid."`
	BrowserOpened    bool   `json:"browserOpened" jsonschema:"Whether a page was opened."`
}

func (AuthRequired) outcome() string { return statusAuthRequired }

// run makes the call with the caller's link. If there is no link, or if the backend rejects it, the user is asked to
// link an account, through the client if it can open URLs, otherwise in the answer.
func (g *gate) run(ctx context.Context, c call, openBrowser *bool, do gatedWork) (any, error) {
	out, refused, err := g.attempt(ctx, c, do)
	if refused == nil {
		return out, err
	}
	code, err := g.ask(ctx, c, refused, do)
	if err != nil {
		return nil, err
	}
	if c.io.Elicit != nil && !conflicting(code, refused.state) && isWebPage(code.VerificationURL) {
		out, answered, err := g.elicit(ctx, c, code, refused, do)
		if answered {
			return out, err
		}
	}
	return authRequired(code, refused.state, g.open(ctx, c, code, refused.state, openBrowser)), nil
}

// ask returns a code. If no code is live, it sends the call to the backend as the anonymous install, and the backend's
// refusal contains a new code.
func (g *gate) ask(ctx context.Context, c call, refused *refusal, do gatedWork) (link.Code, error) {
	gated := link.GatedCall{Tool: c.tool, Args: c.args, Caller: c.who}
	return g.links.Ask(ctx, refused.target, gated, func(ctx context.Context) error {
		if refused.err != nil {
			return refused.err
		}
		_, err := do(ctx, refused.target)
		return err
	})
}

// refusal is the reason why a call could not be made.
type refusal struct {
	target backend.Target
	state  account.State
	// err is the backend's 401, which may contain a code; nil if the call was not sent.
	err error
}

// attempt makes the call if there is a link. It returns a refusal if a link is needed first.
func (g *gate) attempt(ctx context.Context, c call, do gatedWork) (any, *refusal, error) {
	target, current, err := g.links.Target(ctx, c.who)
	if err != nil {
		return nil, nil, err
	}
	if target.Bearer == "" {
		return nil, &refusal{target: target, state: current.State}, nil
	}
	out, err := do(ctx, target)
	if problem.CodeOf(err) == problem.CodeAuthRequired {
		g.links.Revoked(target.Bearer)
		return nil, &refusal{target: target, state: account.Revoked, err: err}, nil
	}
	return out, nil, err
}

// conflicting reports whether the code would replace a live link to another backend. Tools never do that.
func conflicting(code link.Code, state account.State) bool {
	return state == account.OtherBackend && code.Replaces.State == account.Linked
}

// open opens the page of a code. It does not if the caller or the shell forbids it, or if an approval would have no
// effect. By default it opens each code's page only once.
func (g *gate) open(ctx context.Context, c call, code link.Code, state account.State, openBrowser *bool) bool {
	if conflicting(code, state) || openBrowser != nil && !*openBrowser {
		return false
	}
	return g.links.OpenPage(code.DeviceCode.DeviceCode, openBrowser != nil,
		func(page string) bool { return openPage(ctx, g.browser, c.who, page) })
}

// openPage opens the page of a code in the caller's browser, and reports whether it succeeded.
func openPage(ctx context.Context, b Browser, who caller.Caller, page string) bool {
	if !isWebPage(page) {
		return false
	}
	opened, _ := b.Open(ctx, who, page)
	return opened
}
