package tools

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

// Records provides access to the account's projects and their records.
type Records interface {
	// Projects lists the account's projects, sorted by app id.
	Projects(ctx context.Context, target backend.Target) ([]backendapi.Project, error)
	Assistant(ctx context.Context, target backend.Target, project string) (backendapi.AssistantConfig, error)
	// ChangeAssistant returns the configuration after the change.
	ChangeAssistant(ctx context.Context, target backend.Target, project string,
		change backendapi.AssistantChange) (backendapi.AssistantConfig, error)
	Credentials(ctx context.Context, target backend.Target, project string) (backendapi.CredentialList, error)
	// CredentialLink creates a page on which the user sets the credential.
	CredentialLink(ctx context.Context, target backend.Target, project, provider string) (backendapi.CredentialLink, error)
	Analytics(ctx context.Context, target backend.Target, project string,
		query backend.AnalyticsQuery) (backendapi.AnalyticsReport, error)
	GatewayUsage(ctx context.Context, target backend.Target, project string,
		query backend.UsageQuery) (backendapi.GatewayUsage, error)
	ConnectionPage(ctx context.Context, target backend.Target, project string) (backendapi.ConnectionPage, error)
	// ChangeConnectionPage returns the settings after the change.
	ChangeConnectionPage(ctx context.Context, target backend.Target, project string,
		change backendapi.ConnectionPageChange) (backendapi.ConnectionPage, error)
	// ConnectionPageFile returns a project's connection page as one HTML file.
	ConnectionPageFile(ctx context.Context, target backend.Target, project string) (backendapi.ConnectionPageFile, error)
	// MintProjectKey creates the key for a generated module.
	MintProjectKey(ctx context.Context, target backend.Target, project, name string) (backend.ProjectKey, error)
}

// records sends calls about a project's records through the gate and adds the next step to refusals.
type records struct {
	gate     *gate
	sessions Sessions
	source   Records
}

// recordArgs are the arguments shared by all tools for records.
type recordArgs struct {
	projectArg
	linkArg
}

// recordCall identifies the record of a call.
type recordCall struct {
	recordArgs
	// reads is the tool that returns the record's version; empty for records without a version.
	reads string
	// missing is the next step after a not_found error; empty if only the project can be missing.
	missing string
}

// recordWork is the part of a tool that handles a record.
type recordWork func(ctx context.Context, target backend.Target, project string) (any, error)

// unnamedProject is the project in requests from a caller without a link whose directory has no project. The backend
// refuses such a request with a code before it looks up the project.
const unnamedProject = "app.local.unnamed"

func (r records) run(ctx context.Context, c call, about recordCall, do recordWork) (any, error) {
	project, err := r.sessions.Project(ctx, about.Project, c.who)
	if err != nil {
		return nil, err
	}
	return r.gate.run(ctx, c, about.OpenBrowser, func(ctx context.Context, target backend.Target) (any, error) {
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
	return invalid("project is missing, and no "+manifestName+" in or above the working directory names one",
		"Call listProjects and pass one of its projects, or call from the project's folder.")
}

// refusal adds the next step to a refusal, because the backend does not know the names of the tools.
func (about recordCall) refusal(err error, project string) error {
	p := problem.From(err)
	if p == nil || p.Code == problem.CodeAuthRequired { // err may contain a device code
		return err
	}
	told := *p
	switch p.Code {
	case problem.CodeNotFound:
		told.Message = fmt.Sprintf("%s (project %s)", p.Message, clip(project))
		told.FixHint = cmp.Or(about.missing, "Call listProjects for the projects of the linked account; "+
			"createSimulatorSession and generateConnectionModule create a new one.")
	case problem.CodeVersionConflict:
		told.Retryable = false // the call needs the current version, so repeating it cannot succeed
		told.FixHint = fmt.Sprintf("Call %s again, see what somebody else changed, and repeat the change with the "+
			"version that it returns.", about.reads)
	case problem.CodePermissionDenied:
		told.Message, told.FixHint = deniedMessage(p, project), deniedHint(p)
	case problem.CodeNotConfigured:
		if told.FixHint == "" {
			told.FixHint = "Tell the user that the operator of the backend has not set this up; repeating the call does " +
				"not help."
		}
	}
	return &told
}

// deniedMessage adds the missing grant if the backend's message does not contain it.
func deniedMessage(p *problem.Error, project string) string {
	if p.Capability == "" {
		return p.Message
	}
	return fmt.Sprintf("%s of %s is %s for agents, and this needs %s", capabilityOf(p), project, levelWord(p.Granted),
		levelWord(p.Needed))
}

// deniedHint returns a hint that includes the backend's own hint, with the address of the page for changing grants.
func deniedHint(p *problem.Error) string {
	return "Do not try another way. " + cmp.Or(p.FixHint,
		"Ask the account's owner to allow this to agents at /account/mcp-access of the dashboard, then repeat the call.")
}

func capabilityOf(p *problem.Error) string {
	if p.Field != "" {
		return p.Capability + " (" + p.Field + ")"
	}
	return p.Capability
}

// levelWord returns the name of a level as shown on the dashboard.
func levelWord(level string) string {
	return cmp.Or(levelWords[level], level)
}

var levelWords = map[string]string{
	backendapi.LevelOff: "Off", backendapi.LevelRead: "Read", backendapi.LevelReadWrite: "Read + Write",
}

// recordErrors adds the error properties for records.
var recordErrors = alsoErrors("capability", "field", "needed", "granted", "currentVersion")

// onRecord makes a request about a record. answer converts the reply.
func onRecord[T any](
	ctx context.Context, r records, c call, about recordCall,
	request func(context.Context, backend.Target, string) (T, error), answer func(T) any,
) (any, error) {
	return r.run(ctx, c, about, answering(request, answer))
}

// readRecord returns the definition of a tool that reads one of a project's records. request is a method of Records,
// answer converts the reply, and options complete the schema of the answer.
func readRecord[T, A any](
	r records, name, title string, request func(Records, context.Context, backend.Target, string) (T, error),
	answer func(T) A, options ...option,
) definition {
	return define(Tool{
		Name: name, Title: title, NeedsAccount: true,
		Annotations:  Annotations{ReadOnly: true, Idempotent: true},
		OutputSchema: gatedAnswersOf[A]([]string{"ok"}, options...),
	}, func(ctx context.Context, c call, args recordArgs) (any, error) {
		read := func(ctx context.Context, target backend.Target, project string) (T, error) {
			return request(r.source, ctx, target, project)
		}
		return onRecord(ctx, r, c, recordCall{recordArgs: args}, read, func(reply T) any { return answer(reply) })
	})
}

// recordChanger defines a tool that changes a record of a project. options complete the schema of the answer A.
func recordChanger[A any](name, title string, options ...option) Tool {
	return Tool{
		Name: name, Title: title, NeedsAccount: true, Annotations: Annotations{OpenWorld: true},
		OutputSchema: gatedAnswersOf[A]([]string{"changed", "unchanged"}, options...),
	}
}

// recordChange changes fields of the record version that the agent has read.
type recordChange struct {
	recordCall
	version int64
	fields  []string
}

// newChange returns a change with the non-nil fields of to, which is a struct of pointers.
func newChange(args recordArgs, reads string, version *integer, to any) (recordChange, error) {
	change := recordChange{recordCall: recordCall{recordArgs: args, reads: reads}}
	hint := "Call " + reads + " and pass the version that it returns."
	if version == nil {
		return change, missing("version", hint)
	}
	if *version < 0 {
		return change, invalid(`argument "version" is negative`, hint)
	}
	change.version = int64(*version)
	var known []string
	value := reflect.ValueOf(to)
	for _, f := range jsonFields(value.Type()) {
		if f.Type.Kind() != reflect.Pointer {
			continue
		}
		known = append(known, f.json)
		if !value.FieldByIndex(f.Index).IsNil() {
			change.fields = append(change.fields, f.json)
		}
	}
	if len(change.fields) == 0 {
		return change, invalid("there is nothing to change", "Pass at least one of "+strings.Join(known, ", ")+".")
	}
	return change, nil
}

// changed is the outcome of a change. Fields is empty if the record already had these values.
type changed struct {
	Status string   `json:"status" jsonschema:"unchanged: it already had these values."`
	Fields []string `json:"changed" jsonschema:"The fields whose values changed; only these are returned."`
}

// outcome compares the record's version with the version before the change. differ lists the fields that the backend
// reports as changed. If it is empty, every field of the call is assumed to have changed.
func (c recordChange) outcome(version int64, differ []string) (outcome changed, words string) {
	if version == c.version {
		return changed{"unchanged", []string{}}, "Nothing changed: it already had these values. "
	}
	differ = slices.DeleteFunc(slices.Clone(differ), func(field string) bool { return !slices.Contains(c.fields, field) })
	if len(differ) == 0 {
		differ = c.fields
	}
	return changed{"changed", differ}, fmt.Sprintf("Changed %s; the version is %d. ", strings.Join(differ, ", "), version)
}

// copyFields copies the fields with these JSON names from a record to the pointer fields of an answer.
func copyFields(answer, record any, names []string) {
	into, from := reflect.ValueOf(answer).Elem(), reflect.ValueOf(record)
	for _, to := range jsonFields(into.Type()) {
		for _, f := range jsonFields(from.Type()) {
			if f.json != to.json || !slices.Contains(names, f.json) {
				continue
			}
			value := from.FieldByIndex(f.Index)
			if f.Type.Kind() != reflect.Pointer {
				boxed := reflect.New(f.Type)
				boxed.Elem().Set(value)
				value = boxed
			}
			into.FieldByIndex(to.Index).Set(value)
		}
	}
}

// orNot returns an optional text, or none if the text is nil or empty.
func orNot(s *string, none string) string {
	if s == nil || *s == "" {
		return none
	}
	return *s
}

// listed joins the first most words and appends the number of omitted ones.
func listed(words []string, most int) string {
	if len(words) <= most {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), len(words)-most)
}
