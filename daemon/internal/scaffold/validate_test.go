package scaffold

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses/guide"
	"github.com/service-dev/service/internal/problem"
)

// codes lists the errors and warnings, as code@file:line.
func codes(findings []Finding) []string {
	var list []string
	for _, f := range findings {
		if f.Severity != SeverityInfo {
			list = append(list, fmt.Sprintf("%s@%s:%d", f.Code, f.File, f.Line))
		}
	}
	slices.Sort(list)
	return list
}

// integrated is a project with a module and an app that uses it correctly.
func integrated(t *testing.T) string {
	root := t.TempDir()
	o := order(root)
	o.Capabilities = []string{guide.Display, guide.Input, guide.Camera, guide.Phrases}
	if _, err := Write(context.Background(), o, (&minter{}).mint); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "app.py"), []byte(`from service.glasses import connect
with connect("App") as glasses:
    glasses.announce(["next page", "open my list"])
    glasses.show({"type": "text", "text": "x"})
    for event in glasses.events():
        if event.type == "input":
            glasses.photo()
`))
	return root
}

func TestValidate(t *testing.T) {
	t.Parallel()
	add := func(name, text string) func(*testing.T, string) {
		return func(t *testing.T, root string) {
			path := filepath.Join(root, name)
			old, _ := os.ReadFile(path)
			write(t, path, append(old, text...))
		}
	}
	remove := func(name string) func(*testing.T, string) {
		return func(t *testing.T, root string) {
			if err := os.Remove(filepath.Join(root, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, test := range []struct {
		name    string
		break_  func(t *testing.T, root string)
		verdict string
		want    []string
	}{
		{"nothing wrong", func(*testing.T, string) {}, VerdictReady, nil},
		{"a changed file", add("service/glasses.py", "#"), VerdictNeedsWork,
			[]string{"generated_file_changed@service/glasses.py:0"}},
		{"a missing file", remove("service/glasses.py"), VerdictNeedsWork,
			[]string{"generated_file_missing@service/glasses.py:0"}},
		{"a command without its capability", add("app.py", "    glasses.say('x')\n"), VerdictNeedsWork,
			[]string{"capability_not_generated@app.py:8"}},
		{"a wake word", add("app.py", "    glasses.announce(['Hey Meta, next', 'some words'])\n"), VerdictNeedsWork,
			[]string{"phrase_problem@app.py:8"}},
		{"phrases that are alike", add("app.py", "    glasses.announce([\n      \"open my lists\"])\n"), VerdictReady,
			[]string{"phrase_problem@app.py:9"}},
		{"a placeholder", add(".env", "SERVICE_RELEASE=0\nKEY=YOUR_API_KEY\n"), VerdictNeedsWork,
			[]string{"placeholder@.env:2"}},
		{"a placeholder of x", add("config/app.yaml", "key: xxxx\n"), VerdictNeedsWork,
			[]string{"placeholder@config/app.yaml:1"}},
		{"work left in a setting", add("settings.json", "{\"url\": \"TODO\"}"), VerdictNeedsWork,
			[]string{"placeholder@settings.json:1"}},
		{"a secret in the source", add("app.py", "KEY = '"+testKey+"'\n"), VerdictNeedsWork,
			[]string{"secret_in_file@app.py:8"}},
		{"a provider's key in the source", add("app.py", "KEY = 'sk-"+"proj-0123456789abcdefghij'\n"), VerdictNeedsWork,
			[]string{"provider_key_in_file@app.py:8"}},
		{"an endpoint in the source", add("app.py", "U = 'ws://127.0.0.1:4000/api/sessions/loc_abcdefgh234567abcdef/app'\n"),
			VerdictReady, []string{"endpoint_in_source@app.py:8"}},
		{"a simulator in production", add(".env.production", "SERVICE_GLASSES_TRANSPORT=simulator\n"), VerdictNeedsWork,
			[]string{"simulator_in_production@.env.production:1"}},
		{"a key that is not ignored", remove("service/.gitignore"), VerdictNeedsWork,
			[]string{"key_not_ignored@service/service.key:0"}},
		{"a key in version control", add(".git/index", "DIRC\x00\x13service/service.key\x00\x00"), VerdictNeedsWork,
			[]string{"key_tracked@service/service.key:0"}},
		{"a fresh clone", remove("service/service.key"), VerdictReady, []string{"key_missing@service/service.key:0"}},
		{"no project", remove("service.json"), VerdictNeedsWork, []string{"no_project@service.json:0"}},
		{"another project", func(t *testing.T, root string) {
			write(t, filepath.Join(root, "service.json"), []byte(`{"project":"com.example.other"}`))
		}, VerdictNeedsWork, []string{"project_renamed@service/service.manifest.json:0"}},
		{"a module that no manifest names", func(t *testing.T, root string) {
			files, err := Generate(Request{Language: TypeScript, Capabilities: []string{guide.Speech, guide.Motion}})
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(root, "service", files[0].Name), files[0].Data)
		}, VerdictReady, nil},
		{"no app", remove("app.py"), VerdictNeedsWork, []string{"module_not_used@service:0"}},
		{"an Android app without its permissions", add("app/src/main/AndroidManifest.xml",
			`<manifest><uses-permission android:name="android.permission.INTERNET"/></manifest>`),
			VerdictNeedsWork, []string{"permission_missing@app/src/main/AndroidManifest.xml:0"}},
		{"an iOS app with them", add("ios/Info.plist",
			`<plist><dict><key>NSCameraUsageDescription</key><string>For notes</string></dict></plist>`), VerdictReady, nil},
		{"secrets in ignored files", func(t *testing.T, root string) {
			add(".gitignore", "# local\n.env*\n!.env.example\n/conf/**/local.json\n")(t, root)
			add(".env.local", "KEY="+testKey+"\n")(t, root)
			add("conf/a/b/local.json", `{"key": "`+testKey+`"}`)(t, root)
		}, VerdictReady, nil},
		{"secrets in files that are not ignored", func(t *testing.T, root string) {
			add(".gitignore", ".env*\n!.env.example\n/conf/\n")(t, root)
			add(".env.example", "KEY="+testKey+"\n")(t, root)
			add("app/conf/local.json", `{"key": "`+testKey+`"}`)(t, root)
			add(".env", "KEY="+testKey+"\n")(t, root) // tracked nevertheless
			add(".git/index", "DIRC\x00\x04.env\x00")(t, root)
		}, VerdictNeedsWork, []string{"secret_in_file@.env.example:1", "secret_in_file@.env:1",
			"secret_in_file@app/conf/local.json:1"}},
		{"a value that is missing in an ignored file", func(t *testing.T, root string) {
			add(".gitignore", ".env\n")(t, root)
			add(".env", "KEY=YOUR_API_KEY\n")(t, root)
		}, VerdictNeedsWork, []string{"placeholder@.env:1"}},
		{"build copies", func(t *testing.T, root string) {
			add(".gitignore", "/www\n*.min.js\n")(t, root)
			for _, name := range []string{"www/app.js", ".next/server/app.js", "app.min.js"} {
				add(name, "glasses.say('"+testKey+"')\n")(t, root)
			}
			add("talk.ts", "export const WORDS = ['open it now'];\n")(t, root)
			add("talk.js", "export const WORDS = ['open it now'];\n")(t, root)
			add("lib/talk.js", "export const WORDS = ['open it now'];\n//# sourceMappingURL=talk.js.map\n")(t, root)
			add("main.ts", "import { WORDS } from './talk.js';\nglasses.announce(WORDS);\n")(t, root)
		}, VerdictReady, nil},
		{"an ignored module with its key", func(t *testing.T, root string) {
			add(".gitignore", "service/\n")(t, root)
			add("service/glasses.py", "#")(t, root)
		}, VerdictNeedsWork, []string{"generated_file_changed@service/glasses.py:0"}},
		{"a function of the app's own with the name of a method", func(t *testing.T, root string) {
			add("page.ts", "import { glasses } from './app';\nfunction announce(text: string) {}\nannounce('Hey Meta');\n"+
				"screenReader.announce('Hey Meta');\nthis.announce('Hey Meta');\n")(t, root)
		}, VerdictReady, nil},
		{"phrases announced by a variable with another name", func(t *testing.T, root string) {
			add("other.py", "# glasses\nwith connect('App') as g:\n    g.announce(['Hey Meta, next'])\n")(t, root)
			add("third.ts", "function talk(g: Glasses) {\n  g\n    .announce(['Hey Meta, now']);\n}\n")(t, root)
		}, VerdictNeedsWork, []string{"phrase_problem@other.py:3", "phrase_problem@third.ts:3"}},
		{"files that are not the app's", func(t *testing.T, root string) {
			add("node_modules/x/.env", "KEY=YOUR_KEY")(t, root)
			add("page.ts", "dialog.show(); box.clear(); // YOUR turn")(t, root)
		}, VerdictReady, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := integrated(t)
			test.break_(t, root)
			in, err := Inspect(t.Context(), ours, root)
			if err != nil {
				t.Fatal(err)
			}
			verdict, findings := Validate(in)
			if verdict != test.verdict || !slices.Equal(codes(findings), test.want) {
				t.Errorf("%s %v, want %s %v", verdict, codes(findings), test.verdict, test.want)
			}
			for _, f := range findings {
				if f.Message == "" || f.FixHint == "" || strings.Contains(f.Message+f.FixHint, testKey) {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

func TestInspectTellsWhatIsThere(t *testing.T) {
	t.Parallel()
	in, err := Inspect(t.Context(), ours, integrated(t))
	if err != nil {
		t.Fatal(err)
	}
	if in.Project != "com.example.app" || len(in.Modules) != 1 || in.Modules[0].Files[0].State != "intact" ||
		len(in.Phrases) != 2 ||
		!slices.Equal(in.Capabilities, []string{guide.Display, guide.Camera, guide.Input, guide.Phrases}) ||
		!in.Keys[0].Ignored {
		t.Errorf("%+v", in)
	}
	for _, app := range []string{"desk-ts", "desk-py", "desk-go"} {
		root, err := filepath.Abs(filepath.Join(appsDir, app))
		if err != nil {
			t.Fatal(err)
		}
		in, err := Inspect(t.Context(), ours, root)
		if err != nil {
			t.Fatal(err)
		}
		if want := deskUses; !slices.Equal(in.Capabilities, want) {
			t.Errorf("%s uses %v, want %v", app, in.Capabilities, want)
		}
	}
}

var deskUses = []string{guide.Display, guide.Camera, guide.Transcription, guide.Speech, guide.Input, guide.Phrases,
	guide.Time}

func TestInspectStaysInside(t *testing.T) {
	t.Parallel()
	root, outside := t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, ".env"), []byte("KEY=YOUR_KEY"))
	if err := os.Symlink(outside, filepath.Join(root, "link")); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink(filepath.Join(outside, ".env"), filepath.Join(root, ".env")); err != nil {
		t.Skip(err)
	}
	in, err := Inspect(t.Context(), ours, root)
	if err != nil || in.FilesRead != 0 {
		t.Errorf("%+v %v", in, err)
	}
	if verdict, _ := Validate(in); verdict != VerdictNotIntegrated {
		t.Error(verdict)
	}
	for i := range maxFiles + 10 {
		write(t, filepath.Join(root, "many", fmt.Sprint(i)), nil)
	}
	if in, err := Inspect(t.Context(), ours, root); err != nil || !in.Truncated {
		t.Errorf("%v %v", in.Truncated, err)
	}
	if _, err := Inspect(t.Context(), ours, filepath.Join(root, "nowhere")); codeOf(err) != problem.CodeFolderUnusable {
		t.Error(err)
	}
}

func FuzzSource(f *testing.F) {
	f.Add(`glasses.announce(["a", 'b\'', "\u00e9")`)
	f.Add(`{"manifest":1,"modules":[{"files":[{"name":"x"}]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<14 {
			return
		}
		in := &inspector{aliases: map[string]string{}}
		for i, line := range strings.Split(text, "\n") {
			in.line("x.py", i, line, true)
			in.commands("x.py", i, line)
		}
		in.phrases("x.py", text)
		in.constants("x.py", text)
		in.resolve()
		Validate(in.found)
		if m, err := parseManifest([]byte(text)); err == nil && len(m.encode()) == 0 {
			t.Error("a valid manifest could not be encoded")
		}
	})
}

// TestValidate_FindsPhrasesByName announces phrases by names that are defined in the same file, in another file, under
// an alias, and nowhere.
func TestValidate_FindsPhrasesByName(t *testing.T) {
	t.Parallel()
	const clash, unknown = "phrase_problem", "phrases_not_found"
	for _, test := range []struct {
		name    string
		files   map[string]string
		verdict string
		want    string
	}{
		{"a constant of the file", map[string]string{
			"app.py": "PHRASES = [\n  'Hey Meta, next',\n]\nglasses.announce(PHRASES)\n"}, VerdictNeedsWork, clash + "@app.py:2"},
		{"an imported constant", map[string]string{"words.py": "LIST = ('Hey Meta, next', 'open it')\n",
			"app.py": "from words import LIST\nglasses.announce(list(LIST))\n"}, VerdictNeedsWork, clash + "@words.py:1"},
		{"under another name", map[string]string{"words.ts": "export const all: string[] = [\"Hey Meta, next\"];\n",
			"app.ts": "import { all as phrases } from './words';\nawait glasses.announce([...phrases]);\n"},
			VerdictNeedsWork, clash + "@words.ts:1"},
		{"of a namespace", map[string]string{"words.ts": "export const all = [\"Hey Meta, next\"] as const;\n",
			"app.ts": "import * as words from './words';\nglasses.announce(words.all);\n"},
			VerdictNeedsWork, clash + "@words.ts:1"},
		{"the keys of a map", map[string]string{
			"app.py": "COMMANDS = {'Hey Meta, next': 'some value', 'open it': go}\nglasses.announce(COMMANDS.keys())\n"},
			VerdictNeedsWork, clash + "@app.py:1"},
		{"Kotlin", map[string]string{"Words.kt": "val WORDS = listOf(\"Hey Meta, next\")\n",
			"App.kt": "glasses.announce(WORDS)\n"}, VerdictNeedsWork, clash + "@Words.kt:1"},
		{"valid phrases", map[string]string{
			"app.py": "PHRASES = ['next page', 'open my list']\nglasses.announce(phrases=PHRASES)\n"}, VerdictReady, ""},
		{"made at run time", map[string]string{"app.py": "glasses.announce(load())\nglasses.announce(made)\n"},
			VerdictIncomplete, unknown + "@app.py:1 " + unknown + "@app.py:2"},
		{"in two files", map[string]string{"a.py": "ALL = ['next page']\n", "b.py": "ALL = ['open it']\n",
			"app.py": "from a import ALL\nglasses.announce(ALL)\n"}, VerdictIncomplete, unknown + "@app.py:2"},
		{"by a frame that the app builds", map[string]string{
			"app.py": "glasses = []\nsend(\"phrases.announce\", phrases)\n"}, VerdictIncomplete, unknown + "@app.py:2"},
		{"a wrapper's declaration", map[string]string{
			"app.py": "def announce(self, words):\n  glasses.announce(['next page'])\n"}, VerdictReady, ""},
	} {
		root := t.TempDir()
		for name, text := range test.files {
			write(t, filepath.Join(root, name), []byte(text))
		}
		in, err := Inspect(t.Context(), ours, root)
		if err != nil {
			t.Fatal(err)
		}
		verdict, findings := Validate(in)
		if got := strings.Join(codes(findings), " "); verdict != test.verdict || got != test.want {
			t.Errorf("%s: %s %s, want %s %s", test.name, verdict, got, test.verdict, test.want)
		}
	}
}

// TestValidate_KnowsTheModuleOfAnExample checks an example together with its module, as getCodeExample returns them.
// The module has neither project nor key.
func TestValidate_KnowsTheModuleOfAnExample(t *testing.T) {
	t.Parallel()
	for _, language := range Languages() {
		e, err := ExampleOf(language, "voice")
		if err != nil {
			t.Fatal(err)
		}
		files, err := Generate(Request{Language: language, Capabilities: e.Capabilities})
		if err != nil {
			t.Fatal(err)
		}
		root := t.TempDir()
		module := filepath.Join(root, DefaultDir, files[0].Name)
		write(t, filepath.Join(root, e.Name), []byte(e.Code))
		write(t, module, files[0].Data)
		check := func(wantVerdict, want string) {
			t.Helper()
			in, err := Inspect(t.Context(), ours, root)
			if err != nil {
				t.Fatal(err)
			}
			verdict, findings := Validate(in)
			if got := strings.Join(codes(findings), " "); verdict != wantVerdict || got != want ||
				len(in.Modules) != 1 || !in.Modules[0].FromExample || in.Modules[0].Language != language {
				t.Errorf("%s: %s %s, modules %+v, want %s %s", language, verdict, got, in.Modules, wantVerdict, want)
			}
		}
		check(VerdictReady, "")
		write(t, module, append(files[0].Data, '\n'))
		check(VerdictNeedsWork, FindDrift+"@"+DefaultDir+"/"+files[0].Name+":0")
	}
}
