package osservice

import (
	"embed"
	"strconv"
	"strings"
)

// mark appears in every service description that install writes.
const mark = "Written by `service-backend service install`; `service-backend service uninstall` removes it."

// header returns the first lines of a description: the mark and the values that parse reads.
func (s spec) header(prefix string) string {
	var b strings.Builder
	for _, line := range []string{
		mark, "Program: " + s.Program, "Settings: " + s.Settings, "Data: " + s.Data, "User: " + s.User,
		"Stop: " + strconv.Itoa(s.Stop),
	} {
		b.WriteString(prefix + line + "\n")
	}
	return b.String()
}

// parse reads the header of a description. It returns false if the description was not written by install.
func parse(text string) (spec, bool) {
	var s spec
	if !strings.Contains(text, mark) {
		return s, false
	}
	fields := map[string]*string{"Program": &s.Program, "Settings": &s.Settings, "Data": &s.Data, "User": &s.User}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimLeft(strings.TrimSpace(line), "# "), ": ")
		if field := fields[name]; field != nil && *field == "" {
			*field = value
		}
		if name == "Stop" && s.Stop == 0 {
			s.Stop, _ = strconv.Atoi(value)
		}
	}
	return s, true
}

//go:embed templates
var templates embed.FS

// describe returns a function that executes the template with this name.
func describe(name string) func(spec) string {
	text, err := templates.ReadFile("templates/" + name)
	if err != nil {
		panic(err) // the template is not embedded
	}
	return func(s spec) string {
		return strings.NewReplacer("{{header}}", s.header("# "), "{{program}}", s.Program, "{{settings}}", s.Settings,
			"{{data}}", s.Data, "{{user}}", s.User, "{{stop}}", strconv.Itoa(s.Stop)).Replace(string(text))
	}
}

// describeWindows returns the description of a Windows service. On other systems kardianos/service registers a file.
func describeWindows(s spec) string { return "HTTP server of the service.\n" + s.header("") }

// logFile is the log file under OpenRC and SysV init.
const logFile = "/var/log/" + Name + ".log"

// launchdLabel is the name of the service in launchd.
const launchdLabel = "dev.service." + Name
