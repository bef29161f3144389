package oidc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/service-dev/service/internal/textfile"
)

const (
	maxFile      = 256 << 10 // bytes
	maxProviders = 20
)

// settings is one provider in the operator's file.
type settings struct {
	ID               string   `yaml:"id"`
	Name             string   `yaml:"name"`
	Issuer           string   `yaml:"issuer"`
	ClientID         string   `yaml:"client_id"`
	ClientSecret     string   `yaml:"client_secret"`
	ClientSecretFile string   `yaml:"client_secret_file"`
	Scopes           []string `yaml:"scopes"`
	TrustEmail       bool     `yaml:"trust_email"`
}

var providerID = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// load reads the operator's file. A relative path to a secret file is resolved against the directory of that file.
func load(path string) ([]settings, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read providers: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read providers: %w", err)
	}
	all, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	for i := range all {
		if err := all[i].readSecret(filepath.Dir(path)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (p *settings) readSecret(dir string) error {
	if p.ClientSecretFile == "" {
		return nil
	}
	file := p.ClientSecretFile
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	secret, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("provider %s: read client_secret_file: %w", p.ID, err)
	}
	if secret, err = textfile.Decode(secret); err != nil {
		return fmt.Errorf("provider %s: read client_secret_file: %w", p.ID, err)
	}
	if p.ClientSecret = strings.TrimSpace(string(secret)); p.ClientSecret == "" {
		return fmt.Errorf("provider %s: client_secret_file is empty", p.ID)
	}
	return nil
}

// parse rejects unknown keys, so that misspelled keys are not silently ignored. Its errors never contain a value.
func parse(text []byte) ([]settings, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("file is longer than %d bytes", maxFile)
	}
	var file struct {
		Providers []settings `yaml:"providers"`
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, errors.New("not a list of providers with the keys id, name, issuer, " +
			"client_id, client_secret, client_secret_file, scopes, trust_email")
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, errors.New("file has more than one YAML document")
	}
	if len(file.Providers) > maxProviders {
		return nil, fmt.Errorf("file lists more than %d providers", maxProviders)
	}
	seen := map[string]bool{}
	for i := range file.Providers {
		p := &file.Providers[i]
		if err := p.check(); err != nil {
			return nil, fmt.Errorf("provider %d: %w", i+1, err)
		}
		if seen[p.ID] {
			return nil, fmt.Errorf("provider %d: the id %s is already used", i+1, p.ID)
		}
		seen[p.ID] = true
	}
	return file.Providers, nil
}

func (p *settings) check() error {
	if !providerID.MatchString(p.ID) {
		return errors.New("id must be 1 to 32 lower-case letters, digits and dashes")
	}
	if p.Name == "" {
		p.Name = p.ID
	}
	if len(p.Name) > 60 || strings.ContainsFunc(p.Name, func(r rune) bool { return r < ' ' }) {
		return errors.New("name must be a single line of at most 60 bytes")
	}
	if err := checkIssuer(p.Issuer); err != nil {
		return err
	}
	if p.ClientID == "" {
		return errors.New("client_id is missing")
	}
	if (p.ClientSecret == "") == (p.ClientSecretFile == "") {
		return errors.New("set exactly one of client_secret and client_secret_file")
	}
	if len(p.Scopes) == 0 {
		p.Scopes = []string{"openid", "email"}
	}
	if !slices.Contains(p.Scopes, "openid") {
		return errors.New("scopes must include openid")
	}
	return nil
}

func checkIssuer(issuer string) error {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("issuer is not a valid URL")
	}
	if !isPrivate(u) {
		return errors.New("issuer must use https, or http on this machine")
	}
	return nil
}
