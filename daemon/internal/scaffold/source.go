package scaffold

import (
	"bytes"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/service-dev/service/glasses"
)

// methods maps the module's methods, in all its languages, to the commands that they send. Methods in plainMethods are
// common words, so they are recognised only on variables that hold glasses.
var methods = map[string]string{
	"stopSaying": glasses.TypeSpeechStop, "stop_saying": glasses.TypeSpeechStop,
	"startTranscription": glasses.TypeTranscriptionStart, "start_transcription": glasses.TypeTranscriptionStart,
	"stopTranscription": glasses.TypeTranscriptionStop, "stop_transcription": glasses.TypeTranscriptionStop,
	"startAudio": glasses.TypeAudioStart, "start_audio": glasses.TypeAudioStart, "stopAudio": glasses.TypeAudioStop,
	"stop_audio": glasses.TypeAudioStop,
	"startVideo": glasses.TypeVideoStart, "start_video": glasses.TypeVideoStart, "stopVideo": glasses.TypeVideoStop,
	"stop_video":  glasses.TypeVideoStop,
	"startMotion": glasses.TypeMotionStart, "start_motion": glasses.TypeMotionStart, "stopMotion": glasses.TypeMotionStop,
	"stop_motion": glasses.TypeMotionStop,
}

var plainMethods = map[string]string{
	"announce": glasses.TypePhrasesAnnounce, "show": glasses.TypeDisplayShow, "clear": glasses.TypeDisplayClear, "say": glasses.TypeSpeechSay,
	"play":  glasses.TypeSoundPlay,
	"photo": glasses.TypeCameraPhoto, "clip": glasses.TypeCameraVideo, "sleep": glasses.TypeClockSleep,
}

var (
	callPattern    = pattern(`([A-Za-z_]\w*)?[?!]?\.([a-z]\w*)\(`)
	literalPattern = pattern(`"([a-z]+\.[a-z]+)"`)
	inputPattern   = pattern(`["']input["']`)
	stringPattern  = pattern(`"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'`)
	// receiverPattern matches the end of an expression before a method. boundPattern matches a variable that holds
	// glasses.
	receiverPattern = pattern(`([A-Za-z_]\w*)\s*[?!]?\.$`)
	boundPattern    = pattern(`([A-Za-z_]\w*)\s*(?::[^=\n]{0,40})?=\s*(?:try\s+)?(?:await\s+)?(?:\w+\.)?connect\(` +
		`|\bconnect\([^)\n]*\)\s+as\s+([A-Za-z_]\w*)|([A-Za-z_]\w*)\s*\??:\s*(?:\w+\.)?Glasses\b`)
	usesPattern = pattern(`(?i)\bglasses\b`)

	placeholderPattern = pattern(`(?i)\bYOUR[_-][A-Z0-9_-]+|<your[^>\n]{0,40}>|\b(REPLACE|CHANGE)[_-]?(ME|THIS)\b` +
		`|\bINSERT[_-][A-Z0-9_-]*(KEY|TOKEN|SECRET|URL)\b|["'=:]\s*["']?x{3,}["']?\s*$` +
		`|["'=:]\s*["']?(spk|sst)_(x+|\.\.\.|…)`)
	todoPattern      = pattern(`\bTODO\b|\bFIXME\b`)
	secretPattern    = pattern(`\b(spk|sst|svc|sdc)_[A-Za-z0-9_-]{20,}`)
	providerPattern  = pattern(`\bsk-[A-Za-z0-9_-]{20,}|\bAIza[0-9A-Za-z_-]{30,}|\bgsk_[A-Za-z0-9]{20,}`)
	endpointPattern  = pattern(`wss?://[^\s"'<>]*/api/sessions/[a-z]+_[a-z2-7]+`)
	simulatorPattern = pattern(`SERVICE_GLASSES_TRANSPORT["']?\s*[=:]\s*["']?simulator`)
)

// pattern compiles a regular expression on first use, because most daemons never inspect an app.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// source inspects one of the app's files.
func (in *inspector) source(name string) {
	data := in.read(name)
	if data == nil || bytes.IndexByte(data[:min(len(data), 4096)], 0) >= 0 || in.generated[name] {
		return
	}
	text, config := string(data), isConfig(path.Base(name))
	if strings.Contains(text[:min(len(text), 400)], generatedBy) {
		if !isCompiled(name) && (len(in.found.Modules) == 0 || !in.git.ignores(name, false)) {
			in.exampleModule(name, data)
		}
		return // the module's commands are not the app's
	}
	if !config && in.git.ignores(name, false) || in.isBuildCopy(name, text) {
		return
	}
	code := !config && usesPattern().MatchString(text)
	in.bind(text)
	if !config {
		in.constants(name, text)
	}
	for i, line := range strings.Split(text, "\n") {
		in.line(name, i+1, line, config)
		if code {
			in.commands(name, i+1, line)
		}
	}
	if code {
		in.phrases(name, text)
	}
	switch path.Base(name) {
	case "AndroidManifest.xml":
		in.declare("android", name, androidPattern().FindAllStringSubmatch(text, 500))
	case "Info.plist":
		in.declare("ios", name, plistPattern().FindAllStringSubmatch(text, 500))
	}
}

var (
	androidPattern = pattern(`<uses-permission[^>]*android:name="([\w.]+)"`)
	plistPattern   = pattern(`<key>([\w.]+)</key>`)
)

func (in *inspector) declare(platform, name string, found [][]string) {
	d := Declared{Platform: platform, File: name, Names: []string{}}
	for _, m := range found {
		d.Names = append(d.Names, m[1])
	}
	in.found.Declared = append(in.found.Declared, d)
}

// line records the problems of a line. It never quotes a secret.
func (in *inspector) line(name string, number int, line string, config bool) {
	if len(line) > 2000 {
		line = line[:2000]
	}
	classify := func(code, word string) {
		if len(in.found.lineFindings) < 500 {
			in.found.lineFindings = append(in.found.lineFindings, lineFinding{code: code, file: name, line: number, word: word})
		}
	}
	if word := placeholderPattern().FindString(line); word != "" {
		classify(FindPlaceholder, strings.Trim(word, `"'=: `))
	} else if config && todoPattern().MatchString(line) {
		classify(FindPlaceholder, todoPattern().FindString(line))
	}
	if config && in.git.ignores(name, false) {
		return // secrets belong in the key's file
	}
	if m := secretPattern().FindStringSubmatch(line); m != nil {
		classify(FindSecret, m[1]+"_…")
	}
	if key := providerPattern().FindString(line); strings.ContainsAny(key, "0123456789") { // words have no digits
		classify(FindProviderKey, key[:3]+"…")
	}
	if !config && endpointPattern().MatchString(line) {
		classify(FindEndpoint, "")
	}
	if config && strings.Contains(strings.ToLower(path.Base(name)), "prod") && simulatorPattern().MatchString(line) {
		classify(FindSimulator, "")
	}
}

// commands records the commands that a line uses, through methods of the module or by their wire names.
func (in *inspector) commands(name string, number int, line string) {
	use := func(command string) {
		u := Use{command, name, number}
		if len(in.found.Commands) < maxUses && !slices.Contains(in.found.Commands, u) {
			in.found.Commands = append(in.found.Commands, u)
		}
	}
	for _, m := range callPattern().FindAllStringSubmatch(line, 50) {
		if command := methods[m[2]]; command != "" {
			use(command)
		}
		if command := plainMethods[m[2]]; command != "" && in.isGlasses(m[1]) {
			use(command)
		}
	}
	for _, m := range literalPattern().FindAllStringSubmatch(line, 50) {
		if glasses.IsCommand(m[1]) {
			use(m[1])
		}
	}
	if inputPattern().MatchString(line) {
		use(glasses.TypeInput)
	}
}

// phrases records the texts that the app announces, which are the strings before the bracket that closes the call. It
// scans each text only once, so that a file full of unclosed calls takes no longer.
func (in *inspector) phrases(name, text string) {
	line, counted := 1, 0
	for at := 0; ; {
		i := strings.Index(text[at:], "announce(")
		if i < 0 {
			return
		}
		receiver := receiverPattern().FindStringSubmatch(text[max(0, at+i-80) : at+i])
		at += i + len("announce(")
		if receiver == nil || !in.isGlasses(receiver[1]) {
			continue // the app's own function
		}
		line += strings.Count(text[counted:at], "\n")
		counted = at
		here := line
		end := at + closingBracket(text[at:min(len(text), at+8000)])
		for _, m := range stringPattern().FindAllStringSubmatchIndex(text[at:end], glasses.MaxPhrases+1) {
			if len(in.found.Phrases) >= maxUses {
				return
			}
			phrase := text[at+m[0]+1 : at+m[1]-1]
			if plain, err := unquote(phrase); err == nil {
				phrase = plain
			}
			line += strings.Count(text[counted:at+m[0]], "\n")
			counted = at + m[0]
			in.found.Phrases = append(in.found.Phrases, Use{phrase, name, line})
		}
		in.announces = true
		in.announced(text[at:end], Use{File: name, Line: here})
		at = end
	}
}

// bind records the variables of a file that hold glasses.
func (in *inspector) bind(text string) {
	in.bound = map[string]bool{}
	for _, m := range boundPattern().FindAllStringSubmatch(text, 200) {
		in.bound[m[1]+m[2]+m[3]] = true
	}
}

// isGlasses reports whether a variable of the current file holds glasses.
func (in *inspector) isGlasses(name string) bool {
	return in.bound[name] || strings.HasSuffix(strings.ToLower(name), "glasses")
}

// isBuildCopy reports whether a file is JavaScript that was built from another file of the project.
func (in *inspector) isBuildCopy(name, text string) bool {
	if extensions[path.Ext(name)] != "javascript" {
		return false
	}
	stem := strings.TrimSuffix(name, path.Ext(name))
	return strings.Contains(text[max(0, len(text)-300):], "//# sourceMappingURL=") ||
		slices.ContainsFunc([]string{".ts", ".tsx", ".mts", ".cts"},
			func(ext string) bool { return slices.Contains(in.sources, stem+ext) })
}

// isCompiled reports whether the name of a generated file is the name of JavaScript (compiled or the loader) or of a
// type declaration.
func isCompiled(name string) bool {
	return extensions[path.Ext(name)] == "javascript" || strings.Contains(path.Base(name), ".d.")
}

var modulePattern = pattern(`Glasses module (\S+) for ([a-z, ]+)\.`)

// exampleModule records a generated module that no manifest lists, such as the module of an example. The module is
// intact if this version generates the same file. A module from another version cannot be compared.
func (in *inspector) exampleModule(name string, data []byte) {
	m := modulePattern().FindSubmatch(data[:min(len(data), 400)])
	if m == nil || len(in.found.Modules) >= maxExampleModules {
		return
	}
	state := ModuleState{Dir: path.Dir(name), Language: extensions[path.Ext(name)], Version: string(m[1]),
		Capabilities: strings.Split(string(m[2]), ", "), FromExample: true}
	file := FileState{name, "intact"}
	if state.Version == Version {
		files, err := Generate(Request{Language: state.Language, Capabilities: state.Capabilities})
		if err != nil || !bytes.Equal(files[0].Data, data) {
			file.State = "changed"
		}
	}
	state.Files = []FileState{file}
	in.found.Modules = append(in.found.Modules, state)
}

func unquote(inner string) (string, error) {
	var s string
	err := json.Unmarshal([]byte(`"`+inner+`"`), &s)
	return s, err
}

// closingBracket returns the position of the bracket that closes a call or list, or the length of text if there is
// none.
func closingBracket(text string) int {
	depth, quote := 1, byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == ')' || c == ']' || c == '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(text)
}
