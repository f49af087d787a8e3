package logs_test

import (
	"bytes"
	"flag"
	"strings"
	"testing"

	"github.com/kruisekit/kruisekit/examples/reference/logs"
)

func TestOptions(t *testing.T) {
	cases := map[string]struct{ why, args, want, refused string }{
		"none":          {"text, and what concerns everybody", "", "level=INFO msg=said", ""},
		"json":          {"for machines", "--logging-format=json", `"msg":"said"`, ""},
		"verbose":       {"as with klog, more is more", "-v=4", "msg=detail", ""},
		"what klog has": {"manifests pass it", "--logtostderr --stderrthreshold=INFO --skip_headers=true", "msg=said", ""},
		"all of klog": {
			why: "every flag of klog",
			args: "--alsologtostderr --one_output --add_dir_header --skip_log_headers --vmodule=a=1 --log_dir=/a --log_file=a" +
				" --log_file_max_size=1800 --log_backtrace_at=a.go:1 --legacy_stderr_threshold_behavior=true",
			want: "msg=said",
		},
		"formats": {
			why: "the buffers of formats",
			args: "--log-json-split-stream --log-json-info-buffer-size=1Mi --log-text-split-stream=false " +
				"--log-text-info-buffer-size=0" +
				" --log-flush-frequency=5s",
			want: "msg=said",
		},
		"unknown":  {"", "--logging-format=xml", "", "want text or json"},
		"negative": {"", "-v=-1", "", "must not be negative"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var o logs.Options
			set := flag.NewFlagSet("test", flag.ContinueOnError)
			inert := o.Flags(set)
			if err := set.Parse(strings.Fields(c.args)); err != nil {
				t.Fatal(err)
			}
			set.Visit(func(f *flag.Flag) {
				if _, ok := inert[f.Name]; ok == (f.Name == "v" || f.Name == "logging-format") {
					t.Errorf("--%s has no effect: %t", f.Name, ok)
				}
			})
			err := o.Validate()
			if (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
				t.Fatalf("%s: %v, want an error with %q", c.why, err, c.refused)
			}
			if c.refused != "" {
				return
			}
			var out bytes.Buffer
			logger := o.Logger(&out)
			logger.Info("said")
			logger.V(4).Info("detail")
			logger.V(5).Info("too much")
			if got := out.String(); !strings.Contains(got, c.want) || strings.Contains(got, "too much") ||
				strings.Contains(got, "detail") != (o.Verbosity == 4) {
				t.Errorf("%s: %q, want %q", c.why, got, c.want)
			}
		})
	}
}
