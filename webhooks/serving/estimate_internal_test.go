package serving

import (
	"encoding/json"
	"runtime"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What is reserved for a body is at least what its decoded form holds, whichever value it repeats.
func TestDecoded(t *testing.T) {
	cases := map[string]struct{ before, each, after string }{
		"containers": {`{"spec":{"containers":[`, `{}`, `]}}`},
		"volumes":    {`{"spec":{"volumes":[`, `{}`, `]}}`},
		"probes":     {`{"spec":{"containers":[`, `{"livenessProbe":{"httpGet":{}}}`, `]}}`},
		"fields":     {`{"a":{`, `"%d":{}`, `}}`},
		"in spec":    {`{"spec":{`, `"volumes%d":{}`, `}}`},
		"metadata":   {`{"metadata":{"labels":{"a":"b"},"managedFields":[{"fieldsV1":{`, `"f:%d":{}`, `}}]}}`},
		"probe":      {`{"spec":{"containers":[`, `{"livenessProbe":{},"lifecycle":{},"securityContext":{},"resources":{}}`, `]}}`},
		"sources":    {`{"spec":{"volumes":[`, `{"azureDisk":{},"csi":{},"ephemeral":{},"projected":{},"iscsi":{},"rbd":{}}`, `]}}`},
		"objects":    {`{"a":[`, `{"":0}`, `]}`},
		"nested":     {`{"a":[`, `{"a":{}}`, `]}`},
		"lists":      {`{"a":[`, `[]`, `]}`},
		"numbers":    {`{"a":[`, `0`, `]}`},
		"texts":      {`{"a":[`, `""`, `]}`},
		"arguments":  {`{"spec":{"containers":[{"args":[`, `""`, `]}]}}`},
	}
	for name, c := range cases {
		for form, into := range map[string]func() any{"a pod": func() any { return &corev1.Pod{} }, "a map": func() any { return &map[string]any{} }} {
			t.Run(name+" in "+form, func(t *testing.T) {
				var repeated []string
				for i := range 10_000 {
					repeated = append(repeated, strings.ReplaceAll(c.each, "%d", strconv.Itoa(i)))
				}
				body := []byte(c.before + strings.Join(repeated, ",") + c.after)
				object := into()
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				if err := json.Unmarshal(body, object); err != nil {
					t.Fatal(err)
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				held, reserved := int64(after.HeapAlloc)-int64(before.HeapAlloc), decoded(body)+perByte*int64(len(body))
				if held > reserved {
					t.Errorf("%d bytes in memory from %d, more than the %d that are reserved", held, len(body), reserved)
				}
				runtime.KeepAlive(object)
				runtime.KeepAlive(body)
			})
		}
	}
}
