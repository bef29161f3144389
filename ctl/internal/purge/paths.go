package purge

import (
	"io/fs"
	"regexp"
	"strings"
	"sync"
)

// corrupt matches the suffix of a file that was renamed because it could not be read.
const corrupt = `(\.corrupt-\d{8}T\d{6}Z)?`

// files matches the paths of the service's files in a state directory, which the documentation of the state directory
// lists.
var files = anyOf(
	`(adapters|glasses|install|memory)\.json`+corrupt, `auth\.json`, `adapter\.approved`, `config\.yaml`, `consent`,
	`install\.lock`,
	`run/(daemon\.lock|start\.lock|daemon\.json|codes\.json|control\.sock|mcp\.sock)`, `run/a/.+`,
	`log/serviced\.(log|log\.1|stderr)`,
	`glasses\.uncleared/[^/ ]+ [^/ ]+`,
	`adapters/[0-9a-f]{64}(\.exe)?`,
	`fonts/([0-9a-f]{64}|fonts\.json`+corrupt+`)`,
	`sessions/(projects\.json|latest\.json|door\.port)`,
	`sessions/[^/]+/(app\.token|session\.json|assistant\.json|events\.jsonl(\.new)?)`,
	`sessions/[^/]+/media/[0-9a-f]{64}\.[a-z]+`,
	`telemetry/(events\.jsonl(\.old)?|spool\.lock|state\.json)`,
	`telemetry/spool/[0-9a-f]{8}-[0-9a-f-]{27}(\.[0-9a-f]{16})?(\.sent)?\.jsonl`,
	`backend/service\.db(-wal|-shm|-journal|-migrate)?`, `backend/(hmac\.key|credentials\.key|instance|port|sign-in-word)`,
	`backend/\.(hmac\.key|credentials\.key|instance|port|sign-in-word)-\d+`, // left by a killed writer
)

// folders matches the paths of the service's directories.
var folders = anyOf(`adapters`, `backend`, `fonts`, `glasses\.uncleared`, `log`, `run`, `run/a`, `run/a/.+`, `sessions`,
	`sessions/[^/]+`, `sessions/[^/]+/media`, `telemetry`, `telemetry/spool`)

// temporary matches the name of a file that is being written: NAME becomes .NAME.tmp-NUMBER.
var temporary = pattern(`^((?:.*/)?)\.([^/]+)\.tmp-\d+$`)

// probe matches the name of the file that servicectl doctor writes to test a directory.
var probe = pattern(`(^|/)\.doctor\.tmp-\d+$`)

func anyOf(patterns ...string) func() *regexp.Regexp {
	return pattern(`^(` + strings.Join(patterns, "|") + `)$`)
}

// pattern compiles a pattern on first use, because every servicectl command links this package.
func pattern(p string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(p) })
}

// isOurs reports whether the service creates an entry with this path and type. config.yaml may also be a link that the
// user made.
func isOurs(name string, e fs.DirEntry) bool {
	if e.IsDir() {
		return folders().MatchString(name)
	}
	m := temporary().FindStringSubmatch(name)
	if m != nil && !probe().MatchString(name) {
		name = m[1] + m[2]
	}
	isRegular := e.Type().IsRegular()
	switch {
	case probe().MatchString(name):
		return isRegular
	case !files().MatchString(name):
		return false
	case strings.HasPrefix(name, "run/"): // sockets have different types on different systems
		return e.Type()&fs.ModeSymlink == 0
	case strings.HasPrefix(name, "glasses.uncleared/"):
		info, err := e.Info()
		return err == nil && isRegular && info.Size() == 0
	case name == "config.yaml" && m == nil:
		return isRegular || e.Type()&fs.ModeSymlink != 0
	default:
		return isRegular
	}
}
