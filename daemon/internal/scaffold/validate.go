package scaffold

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/service-dev/service/glasses/guide"
)

// Severities of a finding.
const (
	SeverityError   = "error"   // the app will not work, or leaks a secret
	SeverityWarning = "warning" // the app works here but fails elsewhere
	SeverityInfo    = "info"
)

// Codes of findings.
const (
	FindNoModule    = "no_module"
	FindNotUsed     = "module_not_used"
	FindManifest    = "manifest_unreadable"
	FindProjectFile = "project_file_unreadable"
	FindNoProject   = "no_project"
	FindRenamed     = "project_renamed"
	FindDrift       = "generated_file_changed"
	FindMissing     = "generated_file_missing"
	FindOld         = "module_outdated"
	FindCapability  = "capability_not_generated"
	FindUnused      = "capability_not_used"
	FindPermission  = "permission_missing"
	FindLater       = "declaration_for_real_glasses"
	FindPhrase      = "phrase_problem"
	FindPlaceholder = "placeholder"
	FindSecret      = "secret_in_file"
	FindProviderKey = "provider_key_in_file"
	FindEndpoint    = "endpoint_in_source"
	FindSimulator   = "simulator_in_production"
	FindKeyMissing  = "key_missing"
	FindKeyTracked  = "key_tracked"
	FindKeyIgnored  = "key_not_ignored"
	FindKeyMode     = "key_readable_by_others"
	FindTruncated   = "project_too_large"
	FindPage        = "connection_page_changed"
	FindPageMissing = "connection_page_missing"
	FindUnknown     = "phrases_not_found"
)

// Verdicts of a validation.
const (
	VerdictReady         = "ready"
	VerdictIncomplete    = "incomplete" // no errors were found, but some files could not be checked completely
	VerdictNeedsWork     = "needs_work"
	VerdictNotIntegrated = "not_integrated"
)

// Finding is a problem in an app. File is relative to the project's directory. Line is 0 if the finding concerns the
// whole file.
type Finding struct {
	Severity string `json:"severity"`
	Code     string `json:"code"`
	File     string `json:"file"`
	Line     int    `json:"line"`
	Message  string `json:"message"`
	FixHint  string `json:"fixHint"`
}

// Validate evaluates an inspection. The verdict is ready only if there are no errors and everything could be checked.
func Validate(in Inspection) (verdict string, findings []Finding) {
	c := &checker{in: in}
	c.modules()
	c.pages()
	c.capabilities()
	c.permissions()
	c.phrases()
	c.keys()
	c.lineFindings()
	if in.Truncated {
		c.add(SeverityWarning, FindTruncated, "", 0,
			fmt.Sprintf("the project has more than %d files; the others were not read",
				maxFiles), "Pass the app's own folder as dir.")
	}
	order := []string{SeverityError, SeverityWarning, SeverityInfo}
	slices.SortStableFunc(c.findings, func(a, b Finding) int {
		return slices.Index(order, a.Severity) - slices.Index(order, b.Severity)
	})
	verdict = VerdictReady
	switch {
	case len(in.Modules) == 0 && len(in.Commands) == 0:
		verdict = VerdictNotIntegrated
	case slices.ContainsFunc(c.findings, func(f Finding) bool { return f.Severity == SeverityError }):
		verdict = VerdictNeedsWork
	case in.Truncated || len(in.UnknownPhrases) > 0:
		verdict = VerdictIncomplete
	}
	return verdict, c.findings
}

type checker struct {
	in       Inspection
	findings []Finding
}

func (c *checker) add(severity, code, file string, line int, message, hint string) {
	c.findings = append(c.findings, Finding{severity, code, file, line, message, hint})
}

const (
	regenerate     = "Call " + regenerateThen
	regenerateThen = "generateConnectionModule again with the same language and capabilities"
)

func (c *checker) modules() {
	if len(c.in.Modules) == 0 {
		severity, message := SeverityError, "there is no generated module"
		if len(c.in.Commands) > 0 { // the app uses the protocol directly
			severity, message = SeverityInfo, "there is no generated module; the app speaks the protocol itself"
		}
		c.add(severity, FindNoModule, "", 0, message,
			"Call generateConnectionModule, or without an account getCodeExample with dir; "+
				"for other languages searchDocs \"protocol\" explains how to write a client.")
		return
	}
	if len(c.in.Commands) == 0 {
		c.add(SeverityError, FindNotUsed, c.in.Modules[0].Dir, 0, "no file of the app uses the module",
			"Call getCodeExample, which shows how to connect and show something.")
	}
	if c.in.Project == "" && c.generated() {
		c.add(SeverityError, FindNoProject, ProjectFile, 0, "the project has no service.json",
			`Write {"project":"com.example.app"} to service.json at the root of the project.`)
	}
	for _, m := range c.in.Modules {
		if m.Version != Version {
			c.add(SeverityWarning, FindOld, m.Dir, 0, fmt.Sprintf("the module is version %s, this service generates %s",
				m.Version, Version), regenerate+".")
		}
		for _, f := range m.Files {
			switch f.State {
			case "changed":
				hint := "Move the change into a file of the app's own, then call " + regenerateThen + " and force: true."
				if m.FromExample {
					hint = "Move the change into a file of the app's own, delete this one, and call getCodeExample with dir."
				}
				c.add(SeverityError, FindDrift, f.Path, 0, "the generated file was changed by hand", hint)
			case "missing":
				c.add(SeverityError, FindMissing, f.Path, 0, "the generated file is missing", regenerate+".")
			}
		}
	}
}

// generated reports whether a module was generated for this project. The module of an example needs no project or key.
func (c *checker) generated() bool {
	return slices.ContainsFunc(c.in.Modules, func(m ModuleState) bool { return !m.FromExample })
}

// pages checks the copies of the connection page. Its findings are not errors, because the app works without the page.
func (c *checker) pages() {
	for _, f := range c.in.Pages {
		switch f.State {
		case "changed":
			c.add(SeverityWarning, FindPage, f.Path, 0,
				"the connection page was changed by hand, and is kept when the module is generated again",
				"Change its settings with setConnectionPageConfig, then call "+regenerateThen+" and force: true.")
		case "missing":
			c.add(SeverityInfo, FindPageMissing, f.Path, 0, "the connection page is missing",
				regenerate+", or with connectionPage: false to do without the page.")
		}
	}
}

// capabilities compares the capabilities that the app uses with those that the generated modules support.
func (c *checker) capabilities() {
	if len(c.in.Modules) == 0 {
		return
	}
	var generated []string
	for _, m := range c.in.Modules {
		generated = append(generated, m.Capabilities...)
	}
	for _, u := range c.in.Commands {
		for _, capability := range guide.Capabilities() {
			if slices.Contains(capability.Commands, u.Name) && !slices.Contains(generated, capability.ID) {
				c.add(SeverityError, FindCapability, u.File, u.Line,
					fmt.Sprintf("%s needs the capability %s, which the module does not support", u.Name, capability.ID),
					c.generateHint(capability))
			}
		}
	}
	for _, id := range generated {
		capability, _ := guide.CapabilityOf(id)
		if len(capability.Commands) > 0 && id != guide.Time && len(c.in.Commands) > 0 &&
			!slices.Contains(c.in.Capabilities, id) {
			c.add(SeverityInfo, FindUnused, "", 0, fmt.Sprintf("the module was generated for %s, which the app does not use",
				id), "Leave it out of the capabilities, so that the app asks for fewer permissions.")
		}
	}
}

// permissions reports permissions that the capabilities in use need and a platform's manifest does not declare.
func (c *checker) permissions() {
	for _, d := range c.in.Declared {
		for _, need := range guide.Declarations(d.Platform) {
			wanted := len(need.Capabilities) == 0 || slices.ContainsFunc(need.Capabilities,
				func(id string) bool { return slices.Contains(c.in.Capabilities, id) })
			if need.File != path.Base(d.File) || !wanted || slices.Contains(d.Names, need.Key) {
				continue
			}
			severity, code := SeverityError, FindPermission
			if need.When != guide.WhenAlways {
				severity, code = SeverityInfo, FindLater
			}
			c.add(severity, code, d.File, 0, fmt.Sprintf("%s is not declared: %s", need.Key, need.Why),
				fmt.Sprintf("Declare %s (%s).", need.Key, need.Value))
		}
	}
}

func (c *checker) phrases() {
	for _, u := range c.in.UnknownPhrases {
		c.add(SeverityWarning, FindUnknown, u.File, u.Line, fmt.Sprintf(
			"the phrases that %s announces were not found in the app's files",
			u.Name), "Pass the phrases to getVoiceCommandGuidance, or write them as a list of texts with a unique name.")
	}
	byFile := map[string][]string{}
	var files []string
	for _, p := range c.in.Phrases {
		if byFile[p.File] == nil {
			files = append(files, p.File)
		}
		if !slices.Contains(byFile[p.File], p.Name) { // the same list may be announced on two screens
			byFile[p.File] = append(byFile[p.File], p.Name)
		}
	}
	for _, file := range files {
		for _, problem := range guide.CheckPhrases(byFile[file]) {
			severity := SeverityWarning
			if problem.Code == guide.PhraseWakeWord || problem.Code == guide.PhraseSame || problem.Code == guide.PhraseTooLong ||
				problem.Code == guide.PhraseTooMany {
				severity = SeverityError
			}
			line := 0
			for _, p := range c.in.Phrases {
				if p.File == file && p.Name == problem.Phrase {
					line = p.Line
				}
			}
			c.add(severity, FindPhrase, file, line, fmt.Sprintf("phrase %q: %s", problem.Phrase, problem.Message), problem.Fix)
		}
	}
}

// moduleDir returns the directory of the first module that was generated for this project.
func (c *checker) moduleDir() string {
	i := slices.IndexFunc(c.in.Modules, func(m ModuleState) bool { return !m.FromExample })
	return c.in.Modules[i].Dir
}

func (c *checker) keys() {
	if len(c.in.Keys) == 0 && c.generated() {
		c.add(SeverityWarning, FindKeyMissing, c.moduleDir()+"/"+KeyName, 0,
			"the project key is missing (a fresh clone has none, because it is never committed)", regenerate+": it mints one.")
	}
	for _, k := range c.in.Keys {
		switch {
		case k.Tracked:
			c.add(SeverityError, FindKeyTracked, k.Path, 0, "the project key is in version control",
				"Run git rm --cached "+k.Path+", commit, delete the file and call generateConnectionModule, which mints another; "+
					"everyone with the repository has the old key.")
		case !k.Ignored:
			c.add(SeverityError, FindKeyIgnored, k.Path, 0, "no .gitignore excludes the project key",
				"Add "+KeyName+" to "+path.Join(path.Dir(k.Path), ignoreName)+".")
		}
		if !k.Private {
			c.add(SeverityWarning, FindKeyMode, k.Path, 0, "others on this machine can read the project key",
				"Run chmod 600 "+k.Path+".")
		}
	}
}

func (c *checker) lineFindings() {
	for _, m := range c.in.lineFindings {
		switch m.code {
		case FindPlaceholder:
			c.add(SeverityError, m.code, m.file, m.line, fmt.Sprintf("%q is a placeholder for a value", m.word),
				"Write the value there, or read it from the environment.")
		case FindSecret:
			c.add(SeverityError, m.code, m.file, m.line, "a secret ("+m.word+") is in the file",
				"Remove it and mint another; keep secrets in ignored files that the module reads.")
		case FindProviderKey:
			c.add(SeverityError, m.code, m.file, m.line, "a key of an AI provider ("+m.word+") is in the file",
				"Remove it and revoke it at the provider; call models through the AI gateway or your own server.")
		case FindEndpoint:
			c.add(SeverityWarning, m.code, m.file, m.line,
				"the source contains the address of one session; it is invalid once the session ends", "Leave url out: the module "+
					"reads SERVICE_GLASSES_URL.")
		case FindSimulator:
			c.add(SeverityError, m.code, m.file, m.line,
				"a production setting selects the simulator; a release build refuses it",
				"Set SERVICE_GLASSES_TRANSPORT=device for production.")
		case FindRenamed:
			c.add(SeverityError, m.code, m.file, 0,
				fmt.Sprintf("the module and its key belong to the project %s, but service.json contains another",
					m.word), regenerate+": it mints a key of the new project.")
		case FindManifest, FindProjectFile:
			c.add(SeverityError, m.code, m.file, 0, strings.TrimSpace(m.word), "Repair the file, then call "+regenerateThen+".")
		}
	}
}
