package tools

import (
	"context"
	_ "embed" // for descriptions.md
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/link"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
	"github.com/service-dev/service/proto/telemetry"
)

// Links is the part of the device-code flow that the tools use.
type Links interface {
	// Complete waits for the approval of a code. It returns a *problem.Error on failure.
	Complete(ctx context.Context, who caller.Caller, deviceCode string, wait link.Wait) (link.Outcome, error)
	// TakeGated returns the call that needed a code, and removes it.
	TakeGated(deviceCode string) (link.GatedCall, bool)
	// Target returns the backend for the caller's calls and the identity to use. Its Bearer is empty if the link must
	// not be used there.
	Target(ctx context.Context, who caller.Caller) (backend.Target, account.Link, error)
	// Ask returns the live code for (backend, install) and stores the call that needs the code. If there is no code,
	// Ask calls request, and the backend's refusal contains a new one.
	Ask(ctx context.Context, target backend.Target, gated link.GatedCall,
		request func(context.Context) error) (link.Code, error)
	// OpenPage calls open with the page of a code and returns its result. A page that was opened before is opened again
	// only if again is set.
	OpenPage(deviceCode string, again bool, open func(page string) bool) bool
	// Revoked records that the backend rejected a token.
	Revoked(token string)
}

// Sessions is the part of local and browser sessions that the tools use.
type Sessions interface {
	Open(ctx context.Context, target backend.Target, who caller.Caller, req session.Request) (session.Opened, error)
	StartLocal(ctx context.Context, who caller.Caller, req session.LocalRequest) (session.Opened, error)
	ConnectReal(ctx context.Context, who caller.Caller, req session.RealRequest) (session.Real, error)
	Latest(ctx context.Context, who caller.Caller) (id string, ok bool)
	Get(ctx context.Context, target backend.Target, id string) (backend.Session, error)
	List(ctx context.Context, target backend.Target) ([]backend.Session, error)
	Close(ctx context.Context, target backend.Target, id string) (backend.Session, error)
	ClosePrevious(
		ctx context.Context, target backend.Target, who caller.Caller, by session.Opened,
	) session.Replaced
	Since(ctx context.Context, target backend.Target, id string, since int64, limit int) (backendapi.EventPage, error)
	Wait(ctx context.Context, target backend.Target, id string, since int64, limit int,
		wait time.Duration) (backendapi.EventPage, error)
	Display(ctx context.Context, target backend.Target, id string) (session.Display, error)
	Control(ctx context.Context, target backend.Target, id, typ string, payload any,
		media []byte) (glasses.Result, error)
	Advance(ctx context.Context, id string, ms int64) (nowMs int64, settled bool, err error)
	// Project returns the argument or, if empty, the directory's project, or "" if there is none.
	Project(ctx context.Context, argument string, who caller.Caller) (string, error)
	AppTokenFile(id string) string
}

// Accounts reports on the link from local data. The context contains the caller. It needs no adapter, so it also works
// in a sandbox that forbids adapters.
type Accounts interface {
	// InstallID returns the anonymous ID of this install.
	InstallID() string
	// Link returns a snapshot. Its State is OtherBackend if the caller's backend did not issue the link.
	Link(ctx context.Context) account.Link
	// BackendURL returns the backend for the caller's calls: a URL, or "embedded:" followed by the ID if it is known.
	BackendURL(ctx context.Context) string
}

// Browser opens a URL on the caller's desktop. reason explains why the URL was not opened.
type Browser interface {
	Open(ctx context.Context, who caller.Caller, url string) (opened bool, reason string)
}

// Recorder records telemetry events of proto/telemetry. A field is a string or an int64.
type Recorder interface {
	Record(ctx context.Context, event string, fields map[string]any)
}

// Options holds the components of a Catalogue. All except Now are required.
type Options struct {
	Links     Links
	Accounts  Accounts
	Sessions  Sessions
	Scenarios Scenarios
	Browser   Browser
	Telemetry Recorder
	// Records reads and changes the account's projects and their records.
	Records Records
	// Transports lists the available transports.
	Transports Transports
	Now        func() time.Time
}

// Catalogue contains every tool. It is safe for concurrent use.
type Catalogue struct {
	opts  Options
	tools []definition
}

// definition is a tool with its handler. The first result of the handler becomes the structured answer.
type definition struct {
	Tool
	run func(ctx context.Context, c call) (any, error)
}

//go:embed descriptions.md
var descriptionsPage string

// descriptions returns the sections of descriptions.md by their headings.
var descriptions = sync.OnceValue(func() map[string]string {
	texts := map[string]string{}
	for section := range strings.SplitSeq(descriptionsPage, "\n## ") {
		name, text, _ := strings.Cut(section, "\n")
		texts[name] = strings.Join(strings.Fields(text), " ")
	}
	return texts
})

// define returns the definition of a tool whose handler has the arguments A. options complete their schema.
func define[A any](tool Tool, run func(context.Context, call, A) (any, error), options ...option) definition {
	tool.Description = descriptions()[tool.Name]
	read := decode[A]
	if shared, ok := any(*new(A)).(stepFields); ok {
		options = append([]option{byRules(shared.rules())}, options...)
		read = strictly[A](shared.rules())
	}
	tool.InputSchema = argumentsOf[A](options...)
	return definition{Tool: tool, run: func(ctx context.Context, c call) (any, error) {
		var args A
		if err := read(c.args, &args); err != nil {
			return nil, err
		}
		return run(ctx, c, args)
	}}
}

// readOnly returns a Tool that changes nothing.
func readOnly(name, title string, answers json.RawMessage) Tool {
	return Tool{
		Name: name, Title: title, Annotations: Annotations{ReadOnly: true, Idempotent: true}, OutputSchema: answers,
	}
}

type call struct {
	tool string
	args json.RawMessage
	who  caller.Caller
	io   IO
}

// New returns a catalogue of every tool.
func New(opts Options) *Catalogue {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	c := &Catalogue{opts: opts}
	c.tools = c.all(&gate{links: opts.Links, browser: opts.Browser})
	return c
}

// all returns every tool in the order in which agents read them.
func (c *Catalogue) all(g *gate) []definition {
	o := c.opts
	r := sessionGate{gate: g, sessions: o.Sessions, cursors: newRecent[int64](maxCursors)}
	in := injector{sessionGate: r, notes: o.Scenarios}
	rec := records{gate: g, sessions: o.Sessions, source: o.Records}
	return []definition{
		// Discovery and guidance.
		getPlatformInfo{transports: o.Transports}.definition(),
		getCapabilityGuide{}.definition(),
		getPermissions{}.definition(),
		getVoiceCommandGuidance{}.definition(),
		getProductionChecklist{rec}.definition(),
		searchDocs{}.definition(),
		// Project.
		getCodeExample{}.definition(),
		generateConnectionModule{gate: g, records: o.Records, turn: make(chan struct{}, 1)}.definition(),
		inspectIntegration{}.definition(),
		validateIntegration{sessions: o.Sessions}.definition(),
		// Sessions.
		connectRealDevice{o.Sessions, o.Browser}.definition(),
		startLocalSimulation{sessions: o.Sessions}.definition(),
		createSimulatorSession{gate: g, sessions: o.Sessions, browser: o.Browser}.definition(),
		completeAuthLink{links: o.Links, browser: o.Browser, retry: c.dispatch, retries: newRetries()}.definition(),
		getSessionStatus{r}.definition(),
		getEventLog{r}.definition(),
		waitForEvent{sessionGate: r, notes: o.Scenarios}.definition(),
		closeSession{r}.definition(),
		// Glasses of a session.
		getDisplayState{r}.definition(),
		expectDisplay{sessionGate: r, notes: o.Scenarios}.definition(),
		injectInput{in}.definition(),
		injectTranscript{in}.definition(),
		injectSensor{in}.definition(),
		injectFault{in}.definition(),
		setDevice{in}.definition(),
		advanceTime{r}.definition(),
		runSteps{sessionGate: r, scenarios: o.Scenarios}.definition(),
		// Permanent tests.
		recordSession{sessionGate: r, scenarios: o.Scenarios}.definition(),
		replaySession{sessionGate: r, scenarios: o.Scenarios}.definition(),
		// The account and its projects.
		listProjects{rec}.definition(),
		getAssistantConfig(rec),
		setAssistantConfig{rec}.definition(),
		getCredentialStatus(rec),
		setCredential{records: rec, browser: o.Browser}.definition(),
		getGatewayUsage{rec}.definition(),
		getProjectAnalytics{rec}.definition(),
		getConnectionPageConfig(rec),
		setConnectionPageConfig{rec}.definition(),
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

// Call runs a tool for the caller in ctx and records the call. It does not record an unknown tool name, because that is
// the caller's own text. Call never panics and always returns a result.
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

// dispatch runs the tool and converts errors and panics into results.
func (c *Catalogue) dispatch(ctx context.Context, call call) (result Result) {
	defer func() {
		if recover() != nil {
			result = failure(&problem.Error{Code: "internal_error", Message: call.tool + " stopped unexpectedly",
				FixHint: "Report this with the daemon's log (servicectl daemon logs)."})
		}
	}()
	for _, d := range c.tools {
		if d.Name == call.tool {
			out, err := d.run(ctx, call)
			return resultOf(out, err)
		}
	}
	return failure(&problem.Error{Code: "unknown_tool", Message: "there is no tool with this name",
		FixHint: "List the tools and call one of those."})
}

func (c *Catalogue) knows(name string) bool {
	return slices.ContainsFunc(c.tools, func(d definition) bool { return d.Name == name })
}
