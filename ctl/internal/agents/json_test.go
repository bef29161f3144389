package agents

import "testing"

func TestJSONFile_RemoveKeepsComments(t *testing.T) {
	f := jsonFile{key: "mcpServers"}
	for _, c := range []struct{ name, before, after string }{
		{"between two", "{\"mcpServers\": {\n  \"x\": 1, // x\n  // ours\n  \"service\": {},\n  \"y\": 2 // y\n}}",
			"{\"mcpServers\": {\n  \"x\": 1, // x\n  // ours\n  \"y\": 2 // y\n}}"},
		{"last", "{\"mcpServers\": {\n  \"x\": 1 /* a */, // x\n  \"service\": {} // ours\n}}",
			"{\"mcpServers\": {\n  \"x\": 1 /* a */ // x\n   // ours\n}}"},
		{"last with a trailing comma", "{\"mcpServers\": {\n  \"x\": 1,\n  \"service\": {},\n},}",
			"{\"mcpServers\": {\n  \"x\": 1,\n},}"},
		{"line comment before an entry on one line", "{\"mcpServers\": { // all\n\"service\": {}, \"y\": 2}}",
			"{\"mcpServers\": { // all\n \"y\": 2}}"},
		{"comment without a newline at the end", "{\"mcpServers\": {\"service\": {}}} // mine",
			"{\"mcpServers\": {}} // mine"},
		{"byte order mark and CRLF", "\xef\xbb\xbf{\r\n\t\"mcpServers\": {\r\n\t\t\"x\": 1,\r\n\t\t\"service\": " +
			"{}\r\n\t}\r\n}\r\n",
			"\xef\xbb\xbf{\r\n\t\"mcpServers\": {\r\n\t\t\"x\": 1\r\n\t}\r\n}\r\n"},
	} {
		got, err := f.remove([]byte(c.before))
		if err != nil || string(got) != c.after {
			t.Errorf("%s: %v\ngot\n%q\nwant\n%q", c.name, err, got, c.after)
		}
	}
}

func TestJSONFile_AddKeepsByteOrderMarkAndCRLF(t *testing.T) {
	const before = "\xef\xbb\xbf{\r\n\t\"mcpServers\": {\r\n\t\t\"x\": {} // x\r\n\t}\r\n} // end"
	got, err := jsonFile{key: "mcpServers"}.add([]byte(before), shim)
	want := "\xef\xbb\xbf{\r\n\t\"mcpServers\": {\r\n\t\t\"x\": {}, // x\r\n\t\t\"service\": {\r\n\t\t\t\"command\": \"" +
		shimPath + "\",\r\n\t\t\t\"args\": []\r\n\t\t}\r\n\t}\r\n} // end"
	if err != nil || string(got) != want {
		t.Errorf("%v\ngot\n%q\nwant\n%q", err, got, want)
	}
}
