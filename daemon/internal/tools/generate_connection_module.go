package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/scaffold"
	"github.com/service-dev/service/proto/glasses/guide"
)

const generateConnectionModuleText = `Writes the module by which an app connects to its glasses into the project: one source file with connect, reconnect, typed errors and a ` +
	`method for each command of the capabilities asked for; connect.html, the page on which users connect their glasses (setConnectionPageConfig changes it); ` +
	`a manifest; and a project key in an ignored file, which is never in the answer. ` +
	`Idempotent: the same call writes the same bytes and mints no second key. Files that were changed by hand are reported, not overwritten. ` +
	`Call it again to add a capability. Do not use it to learn the API (getCodeExample shows complete apps) or to check a project (validateIntegration). ` +
	`Needs a linked account: without one it answers status "auth_required", a normal step: show the person userCode and verificationUrl, then call ` +
	`completeAuthLink with deviceCode; it repeats this call for you. For other languages write a client: searchDocs "protocol".`

// Scaffold is what generating a module needs of the account: keys of a project.
type Scaffold interface {
	MintProjectKey(ctx context.Context, target backend.Target, project, name string) (backend.ProjectKey, error)
}

type pageFiler interface {
	// ConnectionPageFile brings a project's connection page as one HTML file.
	ConnectionPageFile(ctx context.Context, target backend.Target, project string) (backend.ConnectionPageFile, error)
}

type generateConnectionModule struct {
	gate  *gate
	keys  Scaffold
	pages pageFiler
	turn  chan struct{} // one call writes at a time: two would mint two keys for one folder
}

type generateConnectionModuleArgs struct {
	Language     string   `json:"language"`
	Capabilities []string `json:"capabilities"`
	Project      string   `json:"project"`
	Dir          string   `json:"dir"`
	Force        bool     `json:"force"`
	Page         *bool    `json:"connectionPage"`
	OpenBrowser  *bool    `json:"openBrowser"`
}

type generatedFile struct {
	Path  string `json:"path"`
	State string `json:"state"`
}

type generatedModule struct {
	Status       string          `json:"status"`
	Project      string          `json:"project"`
	Language     string          `json:"language"`
	Version      string          `json:"moduleVersion"`
	Capabilities []string        `json:"capabilities"`
	Dir          string          `json:"dir"`
	Files        []generatedFile `json:"files"`
	KeyFile      string          `json:"keyFile"`
	KeyMinted    bool            `json:"keyMinted"`
	Page         string          `json:"connectionPage"`
	Setting      string          `json:"setting"`
	Example      string          `json:"example"`
	Run          string          `json:"run"`
	Contents     []fileContent   `json:"contents,omitempty"`
	Next         []nextCall      `json:"nextCalls"`
	Summary      string          `json:"summary"`
}

func (t generateConnectionModule) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "generateConnectionModule", Title: "Generate the connection module", Description: generateConnectionModuleText, NeedsAccount: true,
		Annotations: Annotations{Idempotent: true},
		InputSchema: inputSchema(`
			"language":{"type":"string","enum":[`+quoted(scaffold.Languages())+`],"description":"Of the app. typescript is for Node and for the web."},
			"capabilities":{"type":"array","items":{"type":"string","enum":[`+quoted(guide.CapabilityIDs())+`]},"description":"What the app does with the glasses. Left out: display and input. Ask for what is used, no more."},
			"project":{"type":"string","description":"App id in reverse-DNS form, e.g. com.example.app. Left out: that of service.json in or above the working directory, else a new one, which is written there."},
			"dir":{"type":"string","default":"service","description":"Folder for the module below the working directory."},
			"force":{"type":"boolean","default":false,"description":"Overwrite generated files that were changed by hand."},
			"connectionPage":{"type":"boolean","default":true,"description":"Place connect.html too. false leaves it as it is."},
			"openBrowser":{"type":"boolean","description":"Without a link: whether to open the page that asks for one."}`, `"language"`),
		OutputSchema: outputSchema(`
			"status":{"type":"string","enum":["auth_required","generated","unchanged"],"description":"unchanged: everything was there already."},
			"project":{"type":"string"},"language":{"type":"string"},"moduleVersion":{"type":"string"},
			"capabilities":{"type":"array","items":{"type":"string"}},
			"dir":{"type":"string","description":"The module's folder."},
			"files":{"type":"array","items":{"type":"object","properties":{"path":{"type":"string"},"state":{"type":"string","enum":["created","updated","unchanged","kept"],"description":"kept: connect.html was changed by hand."}}}},
			"keyFile":{"type":"string","description":"The file that holds the project key. Do not print or copy it."},
			"keyMinted":{"type":"boolean","description":"false: the key that was there is used."},
			"connectionPage":{"type":"string","enum":["placed","kept","unavailable","left_out"],"description":"What became of connect.html; unavailable: the backend did not give it, the module is there all the same."},
			"setting":{"type":"string","description":"The one setting that chooses between simulator and real glasses."},
			"example":{"type":"string","description":"A complete small app that uses the module."},
			"run":{"type":"string","description":"How to start that app."},
			"contents":`+contentsSchema+`,`+
			nextProperty+`,`+summaryProperty, `"status","summary"`, true),
	}}
}

func (t generateConnectionModule) run(ctx context.Context, c call) (any, error) {
	var args generateConnectionModuleArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	if _, err := scaffold.Normalise(scaffold.Request{Language: args.Language, Capabilities: args.Capabilities}); err != nil {
		return nil, scaffoldError(err)
	}
	return t.gate.run(ctx, c, args.OpenBrowser, func(ctx context.Context, target backend.Target) (any, error) {
		files, collector := writable(c.who)
		mint := func(ctx context.Context, project string) (string, error) {
			key, err := t.keys.MintProjectKey(ctx, target, project, filepath.Base(c.who.Cwd))
			return key.Key, err
		}
		if collector != nil && target.Bearer != "" { // a key is put into a file and nowhere else
			mint = func(context.Context, string) (string, error) { return "", nil }
		}
		if target.Bearer == "" { // the backend refuses and says with which code to link; nothing is written
			project := args.Project
			if project == "" {
				project = unnamedProject
			}
			_, err := mint(ctx, project)
			return nil, err
		}
		select {
		case t.turn <- struct{}{}:
			defer func() { <-t.turn }()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		order := scaffold.Order{
			Request: scaffold.Request{Language: args.Language, Capabilities: args.Capabilities},
			Files:   files, Root: c.who.Cwd, Dir: args.Dir, Project: args.Project, Force: args.Force,
		}
		if args.Page == nil || *args.Page {
			order.Page = func(ctx context.Context, project string) ([]byte, error) {
				f, err := t.pages.ConnectionPageFile(ctx, target, project)
				return []byte(f.HTML), err
			}
		}
		written, err := scaffold.Write(ctx, order, mint)
		if err != nil {
			return nil, scaffoldError(err)
		}
		return t.answer(written, order.Page != nil, collector)
	})
}

func (t generateConnectionModule) answer(w scaffold.Written, page bool, collector *clientio.Collector) (any, error) {
	hello, err := scaffold.ExampleOf(w.Language, "hello")
	if err != nil {
		return nil, scaffoldError(err)
	}
	a := generatedModule{
		Status: "unchanged", Project: w.Project, Language: w.Language, Version: w.Version, Capabilities: w.Capabilities, Dir: w.Dir,
		KeyFile: w.KeyFile, KeyMinted: w.KeyMinted, Example: hello.Code, Run: hello.Run,
		Setting: envGlassesTransport + " is simulator or device; left out it is simulator in a development build and device in a release build, which refuses simulators. " +
			"A simulator's address and secret come from " + envGlassesURL + " and " + envGlassesSecret + ".",
	}
	var names []string
	for _, f := range w.Files {
		a.Files = append(a.Files, generatedFile(f))
		if f.State == "created" || f.State == "updated" {
			a.Status = "generated"
		}
		names = append(names, f.Path)
	}
	a.Next = []nextCall{
		call1("getCodeExample", `{"language":"`+w.Language+`","topic":"state"}`, "see how an app survives refusals and changes of state"),
		call1("startLocalSimulation", `{}`, "get glasses for the app to attach to"),
		call1("validateIntegration", `{}`, "check the project once the app uses the module"),
	}
	a.Summary = fmt.Sprintf("The %s module for %s is in %s (%s): %s. The app imports it as in example; commit everything but %s, which is ignored.",
		w.Language, strings.Join(w.Capabilities, ", "), w.Dir, a.Status, strings.Join(names, ", "), scaffold.KeyName)
	var note string
	a.Page, note = pageOf(w, page)
	a.Summary += note
	if collector != nil {
		a.Contents, a.KeyFile = contentsOf(collector), ""
		a.Summary += notWritten + " No project key was made, for it is put into a file only: make one in the dashboard."
	}
	if w.Language == scaffold.Swift {
		a.Summary += " The Swift module is parsed by a grammar in this service's own tests, not compiled and not run: build it at once."
	}
	return a, nil
}

// pageOf tells what became of the connection page, in a word and a sentence.
func pageOf(w scaffold.Written, asked bool) (word, note string) {
	if !asked {
		return "left_out", ""
	}
	if w.PageErr != nil {
		return "unavailable", " The connection page (" + scaffold.PageName + ") could not be had: " + w.PageErr.Error() + "; call again later to place it."
	}
	for _, f := range w.Files {
		if f.State == "kept" {
			return "kept", " " + f.Path + " was changed by hand and is kept; force: true overwrites it."
		}
	}
	return "placed", ""
}

// scaffoldError puts the scaffold's refusals into the catalogue's words.
func scaffoldError(err error) error {
	if clientio.IsUnavailable(err) {
		return fileError("", err, "")
	}
	var e *scaffold.Error
	if errors.As(err, &e) {
		return &Error{Code: e.Code, Message: e.Message, FixHint: e.FixHint}
	}
	return err
}

// projectDir is the folder that a call is about: the argument, else the caller's working directory.
func projectDir(c call, dir string) (string, error) {
	if dir == "" {
		return c.who.Cwd, nil
	}
	return pathOf(c.who, "dir", dir)
}

// arguments writes a nextCall's arguments.
func arguments(fields map[string]any) string {
	data, err := json.Marshal(fields)
	if err != nil {
		return "{}" // strings and lists of them always encode
	}
	return string(data)
}
