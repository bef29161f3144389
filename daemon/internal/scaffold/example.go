package scaffold

import (
	"embed"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/service-dev/service/glasses/guide"
	"github.com/service-dev/service/internal/problem"
)

// Example is a complete app that uses the generated module.
type Example struct {
	Language string
	Topic    string
	Name     string // file name; the file is in the parent of the module's directory
	Code     string
	Topics   []ExampleTopic
	// Capabilities lists the capabilities that the module must support.
	Capabilities []string
	Run          string // how to start it, with the session's address and secret file in the environment
	// Tests are a scenario and its files, with paths below the folder of the app; none for most topics.
	Tests []File
}

// testsDir is the folder of an example's tests.
const testsDir = "tests"

// ExampleTopic is a subject of examples.
type ExampleTopic struct {
	ID           string   `json:"id"`
	About        string   `json:"about"`
	Capabilities []string `json:"capabilities"`
}

//go:embed examples
var examples embed.FS

// ExampleTopics lists the topics. Each has an example in every language.
func ExampleTopics() []ExampleTopic {
	return []ExampleTopic{
		{"hello", "Shows a text and counts taps: start here.", []string{guide.Display, guide.Input}},
		{"buttons", "A list of buttons to choose from; back clears the panel.", []string{guide.Display, guide.Input}},
		{"voice", "Announces phrases, listens, and answers aloud.",
			[]string{guide.Transcription, guide.Speech, guide.Phrases}},
		{"photo", "Takes a photo on the capture button; tells each refusal apart.",
			[]string{guide.Display, guide.Camera, guide.Input}},
		{"state", "Follows battery, folding, wear, heat, link and permissions, and survives refusals.",
			[]string{guide.Display, guide.State}},
		{"streams", "Raw sound and movement by handlers.", []string{guide.Microphone, guide.Motion, guide.Input}},
		{"timer", "A countdown on the session's clock, which continues while the wearer taps; tests run it in virtual time.",
			[]string{guide.Display, guide.Sound, guide.Input, guide.State}},
		{"assistant", "A spoken question, answered by a language model that calls the app's tool; tests use a script.",
			[]string{guide.Display, guide.Transcription, guide.Speech, guide.Input, guide.Assistant}},
		{"conversation", "A voice assistant with two tools, which the wearer can interrupt; tests use a script.",
			[]string{guide.Display, guide.Input, guide.Assistant}},
		{"memory", "An assistant that remembers the wearer, who is asked first; tests use a script.",
			[]string{guide.Display, guide.Input, guide.Transcription, guide.Assistant}},
	}
}

// ExampleTopicIDs lists the IDs of ExampleTopics.
func ExampleTopicIDs() []string {
	var ids []string
	for _, topic := range ExampleTopics() {
		ids = append(ids, topic.ID)
	}
	return ids
}

var exampleFiles = map[string]struct{ ext, run string }{
	TypeScript: {".ts", "node NAME (Node 22.18 or newer; as JavaScript also Node 20 with --experimental-websocket; in a browser through any bundler)"},
	Python:     {".py", "python3 NAME (3.9 or newer)"},
	Kotlin: {".kt", "kotlinc NAME service/Glasses.kt -include-runtime -d app.jar && java -jar app.jar (or in an " +
		"Android project)"},
	Swift: {".swift", "swiftc -D DEBUG -parse-as-library NAME service/Glasses.swift -o app && ./app (or in an " +
		"Xcode project)"},
}

// ExampleOf returns the example of a topic in a language. It returns a *problem.Error on failure.
func ExampleOf(language, topic string) (Example, error) {
	kind, ok := exampleFiles[language]
	if !ok {
		return Example{}, problem.New(problem.CodeInvalidRequest, "language must be one of "+strings.Join(Languages(), ", "),
			"Pass one of these, or search the documentation for \"protocol\" and write a client: it is JSON over a WebSocket.")
	}
	i := slices.IndexFunc(ExampleTopics(), func(t ExampleTopic) bool { return t.ID == topic })
	if i < 0 {
		return Example{}, problem.New(problem.CodeUnknownExample, "there is no example for this topic",
			"Pass one of these topics: "+strings.Join(ExampleTopicIDs(), ", ")+".")
	}
	name := topic + kind.ext
	code, err := examples.ReadFile(path.Join("examples", language, name))
	if err != nil {
		return Example{}, err
	}
	tests, err := testsOf(topic)
	if err != nil {
		return Example{}, err
	}
	return Example{Language: language, Topic: topic, Name: name, Code: string(code), Topics: ExampleTopics(), Tests: tests,
		Capabilities: ExampleTopics()[i].Capabilities, Run: strings.ReplaceAll(kind.run, "NAME", name)}, nil
}

// testsOf returns the tests of a topic, which are the same in every language.
func testsOf(topic string) (tests []File, err error) {
	dir := path.Join("examples", testsDir, topic)
	entries, err := fs.ReadDir(examples, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		var data []byte
		if data, err = examples.ReadFile(path.Join(dir, e.Name())); err != nil {
			break
		}
		tests = append(tests, File{Name: path.Join(testsDir, e.Name()), Data: data})
	}
	return tests, err
}
