package control

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/service-dev/service/internal/clientio"
)

// CallerHeader is the request header that describes the caller. It is needed because a shell's settings apply only to
// that shell. It is optional and never stored.
const CallerHeader = "Service-Caller"

// MaxCaller is the maximum length of the header's value in bytes. It allows for all variables of internal/rendezvous at
// their maximum length.
const MaxCaller = 192 << 10

// Caller is the shell on whose behalf a call is made. Its texts may not be UTF-8.
type Caller struct {
	// Env contains the caller's values of the variables in internal/rendezvous.
	Env map[string]string
	// Cwd is the absolute path of the working directory.
	Cwd string
	// Client is the calling program, e.g. "servicectl", and Version is its build version.
	Client, Version string
	// ClientIO is the token with which the calling process connected to mcp.sock to open pages and use files for this
	// call (internal/clientio). It is empty if the process does neither.
	ClientIO string
}

// envPrefix precedes the names of variables in the header.
const envPrefix = "env."

// fields returns the fields of the header by name, except for variables.
func (c *Caller) fields() map[string]*string {
	return map[string]*string{"cwd": &c.Cwd, "client": &c.Client, "version": &c.Version, "clientIO": &c.ClientIO}
}

// Encode returns the value of the header in the format of a URL's query: cwd, client, version, clientIO, and env.NAME
// for each variable. Empty fields are omitted, but empty variables are not.
func (c Caller) Encode() string {
	values := url.Values{}
	for name, value := range c.fields() {
		if *value != "" {
			values.Set(name, *value)
		}
	}
	for name, value := range c.Env {
		values.Set(envPrefix+name, value)
	}
	return values.Encode()
}

// ParseCaller parses the value of the header. It ignores unknown fields, which a later version may send. It returns an
// error for a value that is too long or malformed, and for a repeated field.
func ParseCaller(text string) (Caller, error) {
	if len(text) > MaxCaller {
		return Caller{}, fmt.Errorf("the header %s is %d bytes long, over the limit of %d", CallerHeader, len(text),
			MaxCaller)
	}
	values, err := url.ParseQuery(text)
	if err != nil {
		return Caller{}, fmt.Errorf("parse the header %s: %w", CallerHeader, err)
	}
	c := Caller{Env: map[string]string{}}
	fields := c.fields()
	for name, value := range values {
		variable, isVariable := strings.CutPrefix(name, envPrefix)
		switch field := fields[name]; {
		case len(value) != 1:
			return Caller{}, fmt.Errorf("the header %s repeats %q", CallerHeader, name)
		case isVariable:
			c.Env[variable] = value[0]
		case field != nil:
			*field = value[0]
		}
	}
	if c.ClientIO != "" && !clientio.IsToken(c.ClientIO) {
		return Caller{}, fmt.Errorf("the header %s has a malformed clientIO", CallerHeader)
	}
	return c, nil
}
