package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
)

// Records is what the tools need of the account's records; each interface stands with its tool.
type Records interface {
	projectLister
	assistantReader
	assistantChanger
	credentialReader
	credentialLinker
	analyticsReader
	pageReader
	pageChanger
	pageFiler
}

// projectFinder knows which project a directory is about.
type projectFinder interface {
	// Project is the argument, or what the directory says; empty where nothing names one.
	Project(ctx context.Context, argument string, who caller.Caller) (string, error)
}

// records lets a call about a record of a project through the gate, and gives refusals the next step in the words of the
// tools.
type records struct {
	gate     *gate
	projects projectFinder
}

// recordCall is which record a call is about.
type recordCall struct {
	project     string // the argument
	openBrowser *bool
	// reads is the tool that tells the record's version; empty for records that have none.
	reads string
	// missing is the next step when something is not found; empty: only the project can be meant.
	missing string
}

// recordWork is what a tool does with a record.
type recordWork func(ctx context.Context, target backend.Target, project string) (any, error)

// unnamedProject is what the backend is asked about by a caller without a link whose directory names no project: it is
// refused, and told with which code to link, before anybody looks at the project.
const unnamedProject = "app.local.unnamed"

func (r records) run(ctx context.Context, c call, about recordCall, do recordWork) (any, error) {
	project, err := r.projects.Project(ctx, about.project, c.who)
	if err != nil {
		return nil, err
	}
	return r.gate.run(ctx, c, about.openBrowser, func(ctx context.Context, target backend.Target) (any, error) {
		asked := project
		if asked == "" {
			if target.Bearer != "" {
				return nil, noProject()
			}
			asked = unnamedProject
		}
		out, err := do(ctx, target, asked)
		if err != nil {
			return nil, about.refusal(err, asked)
		}
		return out, nil
	})
}

func noProject() error {
	return &Error{Code: CodeInvalidArguments, Message: "no project is named, and no " + manifestName + " in or above the working directory names one",
		FixHint: "call listProjects and pass the project of one, or call from the project's folder"}
}

// refusal adds the next step where the backend cannot know it, because it knows no tools.
func (about recordCall) refusal(err error, project string) error {
	var p *backend.Problem
	if !errors.As(err, &p) {
		return err
	}
	told := *p
	switch p.Code {
	case backend.CodeNotFound:
		told.Message = fmt.Sprintf("%s (project %s)", p.Message, clip(project))
		told.FixHint = first(about.missing, "call listProjects for the projects of the linked account; createSimulatorSession and generateConnectionModule make a new one")
	case backend.CodeVersionConflict:
		told.Retryable = false // the change that was asked for is the same call with another version
		told.FixHint = fmt.Sprintf("call %s again, see what somebody else changed, and repeat the change with the version that it tells", about.reads)
	case backend.CodePermissionDenied:
		told.Message, told.FixHint = deniedMessage(p, project), deniedHint(p)
	case backend.CodeNotConfigured:
		if told.FixHint == "" {
			told.FixHint = "tell the person that the operator of the backend has not set this up; repeating the call does not help"
		}
	}
	return &told
}

// deniedMessage names what is lacking even when the backend's own sentence does not.
func deniedMessage(p *backend.Problem, project string) string {
	if p.Capability == "" {
		return p.Message
	}
	return fmt.Sprintf("%s of %s is %s for agents, and this needs %s", capabilityOf(p), project, levelWord(p.Granted), levelWord(p.Needed))
}

// deniedHint keeps the backend's own hint, which has the address of the page where the owner changes grants.
func deniedHint(p *backend.Problem) string {
	return "do not try another way; " + first(p.FixHint, "ask the account's owner whether agents may do this, at /account/mcp-access of the dashboard; the next call obeys")
}

func capabilityOf(p *backend.Problem) string {
	if p.Field != "" {
		return p.Capability + " (" + p.Field + ")"
	}
	return p.Capability
}

// levelWord writes a level as the dashboard does.
func levelWord(level string) string {
	switch level {
	case backend.LevelOff:
		return "Off"
	case backend.LevelRead:
		return "Read"
	case backend.LevelReadWrite:
		return "Read + Write"
	}
	return level
}

func first(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

const projectArgument = `"project":{"type":"string","description":"App id, e.g. com.example.app. Left out: that of service.json in or above the working directory."}`

const recordLinkArgument = `"openBrowser":{"type":"boolean","description":"Without a link: whether to open the page that asks for one."}`

const recordErrorProperties = `
	"capability":{"type":"string","description":"With permission_denied: which grant is lacking."},
	"field":{"type":"string","description":"With permission_denied: the field that is meant; absent when all are."},
	"needed":{"type":"string","description":"With permission_denied: the level that the call needs."},
	"granted":{"type":"string","description":"With permission_denied: the level that the account's owner set."},
	"currentVersion":{"type":"integer","description":"With version_conflict: the version now."}`

// optional is the schema of a value that may be null.
func optional(schema string) string { return `{"anyOf":[{` + schema + `},{"type":"null"}]}` }

var optionalTime = optional(`"type":"string","format":"date-time"`)

const versionArgument = `"version":{"type":"integer","minimum":0,"description":"The version that was read last. If somebody changed the record since, nothing is changed."}`

// checkVersion refuses a change that does not say what it is made for.
func checkVersion(version *integer, reads string) error {
	if version == nil {
		return &Error{Code: CodeInvalidArguments, Message: `argument "version" is missing`, FixHint: "call " + reads + " and pass the version that it tells"}
	}
	if *version < 0 {
		return &Error{Code: CodeInvalidArguments, Message: `argument "version" is negative`, FixHint: "call " + reads + " and pass the version that it tells"}
	}
	return nil
}

func nothingToChange(fields string) error {
	return &Error{Code: CodeInvalidArguments, Message: "there is nothing to change", FixHint: "pass at least one of " + fields}
}

// changedBy is the status of a change and the fields that it set: none when the record was so already.
func changedBy(before, after int64, named []string) (status string, changed []string) {
	if before == after {
		return "unchanged", []string{}
	}
	return "changed", named
}

// named lists the words whose pointer is set.
type named []string

func (n *named) add(name string, set bool) {
	if set {
		*n = append(*n, name)
	}
}

// orNot writes an optional text.
func orNot(s *string, none string) string {
	if s == nil || *s == "" {
		return none
	}
	return *s
}

// listed joins at most most words, and says how many more there are.
func listed(words []string, most int) string {
	if len(words) <= most {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), len(words)-most)
}
