package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/scaffold"
	"github.com/service-dev/service/glasses/guide"
)

type generateConnectionModule struct {
	gate    *gate
	records Records
	turn    chan struct{} // one call writes at a time, because two calls could create two keys for a directory
}

type generateConnectionModuleArgs struct {
	Language     string   `json:"language" jsonschema:"typescript: Node 22 or newer, and the web."`
	Capabilities []string `json:"capabilities"`
	Project      string   `json:"project" jsonschema:"An app id such as com.example.app."`
	Dir          string   `json:"dir"`
	Force        bool     `json:"force" jsonschema:"Overwrite files changed by hand."`
	Page         *bool    `json:"connectionPage" jsonschema:"Also write connect.html."`
	linkArg
}

type generatedFile struct {
	Path  string `json:"path"`
	State string `json:"state"`
}

type generatedModule struct {
	Status       string          `json:"status" jsonschema:"unchanged: everything was up to date."`
	Project      string          `json:"project"`
	Language     string          `json:"language"`
	Version      string          `json:"moduleVersion"`
	Capabilities []string        `json:"capabilities"`
	Dir          string          `json:"dir" jsonschema:"The module's folder."`
	Files        []generatedFile `json:"files"`
	KeyFile      string          `json:"keyFile"`
	KeyMinted    bool            `json:"keyMinted" jsonschema:"false: the existing key is kept."`
	Page         string          `json:"connectionPage"`
	Setting      string          `json:"setting"`
	Example      string          `json:"example" jsonschema:"A complete small app that uses the module."`
	Run          string          `json:"run" jsonschema:"How to start that app."`
	Contents     []fileContent   `json:"contents,omitempty"`
	Next         []nextCall      `json:"nextCalls"`
	Summary      string          `json:"summary"`
}

func (t generateConnectionModule) definition() definition {
	return define(Tool{
		Name: "generateConnectionModule", Title: "Generate the connection module", NeedsAccount: true,
		Annotations: Annotations{Idempotent: true},
		OutputSchema: gatedAnswersOf[generatedModule]([]string{"generated", "unchanged"},
			on("files.state", oneOf("created", "updated", "unchanged", "kept"),
				says("kept: connect.html was changed by hand.")),
			on("keyFile", says("The file that holds the project key. Do not print or copy it.")),
			on("connectionPage", oneOf("placed", "kept", "unavailable", "left_out"), says("What happened to connect.html; "+
				"unavailable: the backend did not return it, but the module was written.")),
			on("setting", says("The one setting that chooses between simulator and real glasses.")),
		),
	}, t.run,
		required("language"),
		on("language", oneOf(scaffold.Languages()...)),
		on("capabilities", oneOf(guide.CapabilityIDs()...), says("Only what the app uses. Default: display and "+
			"input.")),
		on("dir", byDefault(scaffold.DefaultDir)),
		on("connectionPage", byDefault(true)),
	)
}

func (t generateConnectionModule) run(ctx context.Context, c call, args generateConnectionModuleArgs) (any, error) {
	if _, err := scaffold.Normalise(scaffold.Request{Language: args.Language,
		Capabilities: args.Capabilities}); err != nil {
		return nil, scaffoldError(err)
	}
	return t.gate.run(ctx, c, args.OpenBrowser, func(ctx context.Context, target backend.Target) (any, error) {
		root, rootErr := moduleRoot(c.who, args.Dir)
		files, collector := writable(c.who)
		mint := func(ctx context.Context, project string) (string, error) {
			key, err := t.records.MintProjectKey(ctx, target, project, filepath.Base(root))
			return key.Key, err
		}
		if collector != nil && target.Bearer != "" { // keys are written to files only, never into answers
			mint = func(context.Context, string) (string, error) { return "", nil }
		}
		if target.Bearer == "" { // the backend refuses and returns a code; no file is written
			project := args.Project
			if project == "" {
				project = unnamedProject
			}
			_, err := mint(ctx, project)
			return nil, err
		}
		if rootErr != nil {
			return nil, rootErr
		}
		select {
		case t.turn <- struct{}{}:
			defer func() { <-t.turn }()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		order := scaffold.Order{
			Request: scaffold.Request{Language: args.Language, Capabilities: args.Capabilities},
			Files:   files, Root: root, Dir: args.Dir, Project: args.Project, Force: args.Force,
		}
		if args.Page == nil || *args.Page {
			order.Page = func(ctx context.Context, project string) ([]byte, error) {
				f, err := t.records.ConnectionPageFile(ctx, target, project)
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
		Status: "unchanged", Project: w.Project, Language: w.Language, Version: w.Version, Capabilities: w.Capabilities,
		Dir:     w.Dir,
		KeyFile: w.KeyFile, KeyMinted: w.KeyMinted, Example: hello.Code, Run: hello.Run,
		Setting: envGlassesTransport + " is simulator or device; its default is simulator in a development build and " +
			"device in a release build, which refuses simulators. " +
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
		suggest("getCodeExample", `{"language":"`+w.Language+`","topic":"state"}`,
			"see how an app handles refusals and changes of state"),
		suggest("startLocalSimulation", `{}`, "get glasses for the app to attach to"),
		suggest("validateIntegration", `{}`, "check the project once the app uses the module"),
	}
	a.Summary = fmt.Sprintf("The %s module for %s is in %s (%s): %s. The app imports it as the example does; commit "+
		"everything but %s, which is ignored.",
		w.Language, strings.Join(w.Capabilities, ", "), w.Dir, a.Status, strings.Join(names, ", "), scaffold.KeyName)
	var note string
	a.Page, note = pageOf(w, page)
	a.Summary += note
	if collector != nil {
		a.Contents, a.KeyFile = contentsOf(collector), ""
		a.Summary += notWritten + " No project key was created, because keys go only into files: create one in the dashboard."
	}
	if w.Language == scaffold.Swift {
		a.Summary += " This service's tests parse the Swift module but neither compile nor run it: " +
			"build it now."
	}
	return a, nil
}

// pageOf returns the outcome for the connection page as a word and a sentence.
func pageOf(w scaffold.Written, asked bool) (word, note string) {
	if !asked {
		return "left_out", ""
	}
	if w.PageErr != nil {
		return "unavailable", " The connection page (" + scaffold.PageName + ") could not be fetched: " + w.PageErr.Error() +
			"; call again later to place it."
	}
	for _, f := range w.Files {
		if f.State == "kept" {
			return "kept", " " + f.Path + " was changed by hand and is kept; force: true overwrites it."
		}
	}
	return "placed", ""
}

// scaffoldError converts an error of package scaffold into an error for the agent.
func scaffoldError(err error) error {
	if clientio.IsUnavailable(err) {
		return fileError("", err, "")
	}
	return err
}

// moduleRoot returns the app's directory for a module in dir, which is normally the caller's working directory. In a
// shared directory, dir must be absolute, and the app's directory is its parent.
func moduleRoot(who caller.Caller, dir string) (string, error) {
	if !caller.IsShared(who.Cwd) {
		return who.Cwd, nil
	}
	root := filepath.Dir(dir)
	if !filepath.IsAbs(dir) || root == filepath.Dir(root) {
		return "", noAppFolder(who, "Pass dir, the absolute path of the module's folder in the app's folder, such as "+
			filepath.Join(who.Cwd, "my-app", scaffold.DefaultDir)+".")
	}
	return root, nil
}

func noAppFolder(who caller.Caller, hint string) error {
	return invalid("this call comes from "+who.Cwd+", which is not an app's folder", hint)
}

// projectDir returns the directory of a call: the argument or, if empty, the caller's working directory, which must not
// be shared.
func projectDir(c call, dir string) (string, error) {
	if dir == "" && caller.IsShared(c.who.Cwd) {
		return "", noAppFolder(c.who, "Pass dir, the app's folder.")
	}
	if dir == "" {
		return c.who.Cwd, nil
	}
	return pathOf(c.who, "dir", dir)
}

// arguments returns the arguments of a nextCall as JSON.
func arguments(fields map[string]any) string {
	data, _ := json.Marshal(fields) // strings and lists of strings can always be encoded
	return string(data)
}
