package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// linked is a person with an account at a backend, and the token of the install they linked.
type linked struct {
	base   string
	client *http.Client // with the person's cookies
	token  string
}

// The account of every backend that this bench starts; it lives as long as the bench.
const (
	benchEmail    = "bench@example.org"
	benchPassword = "a long enough password"
)

var (
	hiddenInput = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`)
	formAction  = regexp.MustCompile(`(?s)<form[^>]*action="([^"]+)".*?</form>`)
)

// link goes through the device-code flow as a person and their agent do.
func link(base string) (*linked, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	l := &linked{base: base, client: &http.Client{Jar: jar}}
	var code struct{ DeviceCode, VerificationURL string }
	if err := l.post("/api/auth/device/code", map[string]any{"scope": "account_full"}, &code); err != nil {
		return nil, err
	}
	page, at, err := l.get(code.VerificationURL)
	if err != nil {
		return nil, err
	}
	for _, step := range []struct {
		path   string
		fields []string
	}{{"/signup", []string{"email", benchEmail, "password", benchPassword, "accept", "yes"}}, {"/activate/approve", nil}} {
		if page, at, err = l.submit(page, at, step.path, step.fields...); err != nil {
			return nil, err
		}
	}
	var got struct {
		AuthToken string
		Pending   bool
	}
	for range 60 {
		if err := l.post("/api/auth/device/token", map[string]any{"deviceCode": code.DeviceCode}, &got); err != nil {
			return nil, err
		}
		if !got.Pending {
			break
		}
		time.Sleep(time.Second)
	}
	l.token = got.AuthToken
	return l, nil
}

// post makes one call, as the install until there is a token.
func (l *linked) post(path string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, l.base+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if l.token != "" {
		req.Header.Set("Authorization", "Bearer "+l.token)
	} else {
		req.Header.Set("X-Service-Install-Id", "inst_bench")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("POST %s answered %d", path, resp.StatusCode)
	}
	return json.Unmarshal(answer, into)
}

func (l *linked) get(address string) (page string, at *url.URL, err error) {
	resp, err := l.client.Get(address)
	if err != nil {
		return "", nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return string(data), resp.Request.URL, err
}

// submit sends the page's form for a path, with its hidden fields.
func (l *linked) submit(page string, at *url.URL, path string, more ...string) (string, *url.URL, error) {
	for _, form := range formAction.FindAllStringSubmatch(page, -1) {
		target, err := at.Parse(strings.ReplaceAll(form[1], "&amp;", "&"))
		if err != nil || target.Path != path {
			continue
		}
		fields := url.Values{}
		for _, in := range hiddenInput.FindAllStringSubmatch(form[0], -1) {
			fields.Set(in[1], strings.ReplaceAll(in[2], "&amp;", "&"))
		}
		for i := 0; i+1 < len(more); i += 2 {
			fields.Set(more[i], more[i+1])
		}
		req, err := http.NewRequest(http.MethodPost, target.String(), strings.NewReader(fields.Encode()))
		if err != nil {
			return "", nil, err
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", target.Scheme+"://"+target.Host)
		req.Header.Set("Sec-Fetch-Site", "same-origin")
		resp, err := l.client.Do(req)
		if err != nil {
			return "", nil, err
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		return string(data), resp.Request.URL, err
	}
	return "", nil, fmt.Errorf("the page at %s has no form for %s", at.Path, path)
}

// session opens a fresh simulator session and gives its id and an app secret.
func (l *linked) session(n int) (id, secret string, err error) {
	var s struct{ SessionID string }
	body := map[string]any{"project": fmt.Sprintf("com.example.bench%d", n%20), "platform": "web", "fresh": true}
	if err := l.post("/api/sessions", body, &s); err != nil {
		return "", "", err
	}
	var minted struct{ AppSecret string }
	err = l.post("/api/sessions/"+s.SessionID+"/secrets", map[string]any{}, &minted)
	return s.SessionID, minted.AppSecret, err
}
