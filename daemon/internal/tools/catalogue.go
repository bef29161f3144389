package tools

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/link"
	"github.com/service-dev/service/proto/telemetry"
)

// Links is what the tools need of the device-code flow.
type Links interface {
	// Target tells where the caller's calls go and as whom; its Bearer is empty unless the link may be used there.
	Target(ctx context.Context, who caller.Caller) (backend.Target, account.Link, error)
	// Ask returns the live code of (backend, install) and remembers the call that needs it. Where there is none, knock
	// makes the call, and the backend's refusal brings one.
	Ask(ctx context.Context, target backend.Target, gated link.GatedCall, knock func(context.Context) error) (link.Code, error)
	// Complete waits for the approval of a code. Errors are *backend.Problem.
	Complete(ctx context.Context, who caller.Caller, deviceCode string, wait link.Wait) (link.Outcome, error)
	// TakeGated returns the call that asked for a code, once.
	TakeGated(deviceCode string) (link.GatedCall, bool)
	// Revoked notes that the backend refused a token.
	Revoked(token string)
}

// Sessions is what the tools need of glasses sessions, local and in the browser; each interface stands with its tool.
type Sessions interface {
	sessionOpener
	localStarter
	sessionFinder
	sessionCloser
	eventReader
	eventWaiter
	displayReader
	glassesControl
	advancer
	projectFinder
}

// Accounts is what is known of the link without asking anybody; the caller is in the context. It needs no adapter, so
// that it also answers where a sandbox allows none.
type Accounts interface {
	// InstallID is the anonymous id of this install.
	InstallID() string
	// Link is the snapshot; its State is OtherBackend when the caller's backend did not mint it.
	Link(ctx context.Context) account.Link
	// BackendURL is where the caller's calls go: a URL, or "embedded:" with the id where it is known.
	BackendURL(ctx context.Context) string
}

// Browser opens a URL in the caller's desktop; reason says why it did not.
type Browser interface {
	Open(ctx context.Context, who caller.Caller, url string) (opened bool, reason string)
}

// Recorder takes telemetry events of proto/telemetry; a field is a string or an int64.
type Recorder interface {
	Record(ctx context.Context, event string, fields map[string]any)
}

// Options are the parts of a Catalogue; all but Now are required.
type Options struct {
	Links     Links
	Accounts  Accounts
	Sessions  Sessions
	Scenarios Scenarios
	Browser   Browser
	Telemetry Recorder
	// Scaffold mints the keys of projects; see generate_connection_module.go.
	Scaffold Scaffold
	// Records reads and changes what belongs to the account's projects; see records.go.
	Records Records
	// Docs searches the bundled documentation; see search_docs.go.
	Docs Docs
	Now  func() time.Time
}

// Catalogue holds every tool. It is safe for concurrent use.
type Catalogue struct {
	opts  Options
	tools []definition
}

// definition is a tool and what it does. run's first result is marshalled into the structured answer.
type definition struct {
	Tool
	run func(ctx context.Context, c call) (any, error)
}

// call is one call of one tool.
type call struct {
	tool string
	args json.RawMessage
	who  caller.Caller
	io   IO
}

// New assembles the catalogue.
func New(opts Options) *Catalogue {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	c := &Catalogue{opts: opts}
	c.tools = c.all(&gate{links: opts.Links, browser: opts.Browser})
	return c
}

// all lists every tool in the order in which agents read them. A new tool is added here and nowhere else.
func (c *Catalogue) all(g *gate) []definition {
	o := c.opts
	r := reach{gate: g, sessions: o.Sessions, cursors: &cursors{}}
	in := injector{reach: r, glasses: o.Sessions}
	rec := records{gate: g, projects: o.Sessions}
	return []definition{
		// Discovery and guidance.
		getPlatformInfo{}.definition(),
		getCapabilityGuide{}.definition(),
		getPermissions{}.definition(),
		getVoiceCommandGuidance{}.definition(),
		getProductionChecklist{}.definition(),
		searchDocs{docs: o.Docs}.definition(),
		// The project.
		getCodeExample{}.definition(),
		generateConnectionModule{gate: g, keys: o.Scaffold, pages: o.Records, turn: make(chan struct{}, 1)}.definition(),
		inspectIntegration{}.definition(),
		validateIntegration{}.definition(),
		// Sessions.
		startLocalSimulation{sessions: o.Sessions}.definition(),
		createSimulatorSession{gate: g, sessions: o.Sessions, browser: o.Browser}.definition(),
		completeAuthLink{links: o.Links, retry: c.dispatch, retries: &retries{}}.definition(),
		getSessionStatus{r}.definition(),
		getEventLog{reach: r, sessions: o.Sessions}.definition(),
		waitForEvent{reach: r, sessions: o.Sessions}.definition(),
		closeSession{reach: r, sessions: o.Sessions}.definition(),
		// The glasses of a session.
		getDisplayState{reach: r, sessions: o.Sessions}.definition(),
		expectDisplay{reach: r, sessions: o.Sessions}.definition(),
		injectInput{in}.definition(),
		injectTranscript{in}.definition(),
		injectSensor{in}.definition(),
		injectFault{in}.definition(),
		setDevice{in}.definition(),
		advanceTime{reach: r, sessions: o.Sessions}.definition(),
		// Tests that stay.
		recordSession{reach: r, scenarios: o.Scenarios}.definition(),
		replaySession{reach: r, scenarios: o.Scenarios}.definition(),
		// The account and what belongs to its projects.
		listProjects{records: rec, source: o.Records}.definition(),
		getAssistantConfig{records: rec, source: o.Records}.definition(),
		setAssistantConfig{records: rec, source: o.Records}.definition(),
		getCredentialStatus{records: rec, source: o.Records}.definition(),
		setCredential{records: rec, source: o.Records, browser: o.Browser}.definition(),
		getProjectAnalytics{records: rec, source: o.Records}.definition(),
		getConnectionPageConfig{records: rec, source: o.Records}.definition(),
		setConnectionPageConfig{records: rec, source: o.Records}.definition(),
		whoAmI{accounts: o.Accounts}.definition(),
	}
}

// List returns the tools in a fixed order.
func (c *Catalogue) List() []Tool {
	list := make([]Tool, len(c.tools))
	for i, d := range c.tools {
		list[i] = d.Tool
	}
	return list
}

// Call runs a tool for the caller in ctx and records that it ran; a name that is no tool's is the caller's own text and
// not recorded. It never panics and always returns a result.
func (c *Catalogue) Call(ctx context.Context, name string, args json.RawMessage, io IO) Result {
	start := c.opts.Now()
	result := c.dispatch(ctx, call{tool: name, args: args, who: caller.From(ctx), io: io})
	if !c.knows(name) {
		return result
	}
	who := caller.From(ctx)
	c.opts.Telemetry.Record(context.WithoutCancel(ctx), telemetry.ToolCalled, map[string]any{
		"tool": name, "outcome": result.Outcome, "durationMs": c.opts.Now().Sub(start).Milliseconds(),
		"client": who.Client, "clientVersion": who.Version,
	})
	return result
}

// dispatch finds the tool and turns whatever it does into a result.
func (c *Catalogue) dispatch(ctx context.Context, call call) (result Result) {
	defer func() {
		if recover() != nil {
			result = failure(&Error{Code: "internal_error", Message: call.tool + " stopped unexpectedly", FixHint: "report this with the daemon's log (servicectl daemon logs)"})
		}
	}()
	for _, d := range c.tools {
		if d.Name == call.tool {
			out, err := d.run(ctx, call)
			return resultOf(out, err)
		}
	}
	return failure(&Error{Code: "unknown_tool", Message: "there is no tool of this name", FixHint: "list the tools and call one of those"})
}

func (c *Catalogue) knows(name string) bool {
	return slices.ContainsFunc(c.tools, func(d definition) bool { return d.Name == name })
}
