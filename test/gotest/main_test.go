package main

import (
	"os"
	"strings"
	"testing"

	"github.com/service-dev/service/test/reaper"
)

func TestMain(m *testing.M) { os.Exit(reaper.Run(m.Run)) }

const stream = `{"Action":"start","Package":"a"}
{"Action":"output","Package":"a","Test":"TestGood","Output":"=== RUN   TestGood\n"}
{"Action":"output","Package":"a","Test":"TestGood","Output":"    a_test.go:3: chatter\n"}
{"Action":"pass","Package":"a","Test":"TestGood"}
{"Action":"output","Package":"a","Test":"TestBad","Output":"    a_test.go:7: it is bad\n"}
{"Action":"fail","Package":"a","Test":"TestBad"}
{"Action":"output","Package":"a","Output":"FAIL\ta\t0.1s\n"}
{"Action":"fail","Package":"a"}
{"Action":"output","Package":"b","Test":"TestPage","Output":"    b_test.go:9: SKIPPED, chromium is missing: apt-get install chromium\n"}
{"Action":"skip","Package":"b","Test":"TestPage"}
{"Action":"output","Package":"b","Test":"TestOther","Output":"    b_test.go:30: SKIPPED, chromium is missing: apt-get install chromium\n"}
{"Action":"skip","Package":"b","Test":"TestOther"}
{"Action":"output","Package":"b","Test":"TestStory","Output":"        > [!linux] skip 'SKIPPED: runs on Linux only'\n"}
{"Action":"pass","Package":"b","Test":"TestStory"}
{"Action":"output","Package":"b","Output":"PASS\n"}
{"Action":"output","Package":"b","Output":"ok  \tb\t0.2s\n"}
{"Action":"pass","Package":"b"}
{"ImportPath":"c","Action":"build-output","Output":"c.go:1: no such thing\n"}
no JSON at all
`

const printed = `    a_test.go:7: it is bad
FAIL	a	0.1s
ok  	b	0.2s
c.go:1: no such thing
no JSON at all

NOT TESTED HERE:
SKIPPED, chromium is missing: apt-get install chromium
    b TestOther
    b TestPage
`

func TestReport(t *testing.T) {
	var out strings.Builder
	r := newReport(&out)
	if err := r.read(strings.NewReader(stream)); err != nil {
		t.Fatal(err)
	}
	r.printSkipped()
	if out.String() != printed {
		t.Errorf("got output\n%s\nwant\n%s", out.String(), printed)
	}
}
