package imagelistpulljob

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// A list that the webhook would reject makes no jobs; the faults themselves are in the tables of the package validation.
func TestInvalid(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat(`"nginx:%d",`, 256), ",")
	numbers := make([]any, 256)
	for i := range numbers {
		numbers[i] = i
	}
	secrets := make([]string, 33)
	for i := range secrets {
		secrets[i] = fmt.Sprint("s", i)
	}
	for name, c := range map[string]struct{ spec, want string }{
		"valid":          {`{"images":["a"]}`, ""},
		"no images":      {`{"images":[]}`, "spec.images: Required"},
		"many images":    {`{"images":[` + fmt.Sprintf(many, numbers...) + `]}`, "spec.images: Too many"},
		"twice":          {`{"images":["a","b","a"]}`, "spec.images[2]: Duplicate"},
		"one bad image":  {`{"images":["Not An Image","a",""]}`, ""},
		"bad and twice":  {`{"images":["Not An Image","a","a"]}`, "spec.images[2]: Duplicate"},
		"deadline":       {`{"images":["a"],"completionPolicy":{"type":"Always","activeDeadlineSeconds":599}}`, "spec.completionPolicy.activeDeadlineSeconds: Invalid"},
		"never ends":     {`{"images":["a"],"completionPolicy":{"type":"Never","ttlSecondsAfterFinished":1}}`, "spec.completionPolicy.ttlSecondsAfterFinished: Forbidden"},
		"never, timed":   {`{"images":["a"],"completionPolicy":{"type":"Never","activeDeadlineSeconds":1}}`, "spec.completionPolicy.activeDeadlineSeconds: Forbidden"},
		"policy":         {`{"images":["a"],"completionPolicy":{"type":"Sometimes"}}`, "spec.completionPolicy.type: Unsupported"},
		"parallelism":    {`{"images":["a"],"parallelism":"50%"}`, "spec.parallelism: Invalid"},
		"negative":       {`{"images":["a"],"parallelism":-1}`, "spec.parallelism: Invalid"},
		"selectors":      {`{"images":["a"],"selector":{},"podSelector":{}}`, "spec.selector: Forbidden"},
		"odd selector":   {`{"images":["a"],"selector":{"matchExpressions":[{"key":"a","operator":"Near"}]}}`, "spec.selector.matchExpressions[0].operator: Invalid"},
		"odd pods":       {`{"images":["a"],"podSelector":{"matchExpressions":[{"key":"a","operator":"Near"}]}}`, "spec.podSelector.matchExpressions[0].operator: Invalid"},
		"names twice":    {`{"images":["a"],"selector":{"names":["n","n"]}}`, "spec.selector.names[1]: Duplicate"},
		"names, labels":  {`{"images":["a"],"selector":{"names":["n"],"matchLabels":{"a":"b"}}}`, "spec.selector.names: Forbidden"},
		"many secrets":   {`{"images":["a"],"pullSecrets":["` + strings.Join(secrets, `","`) + `"]}`, ""},
		"long sandbox":   {`{"images":["a"],"sandboxConfig":{"annotations":{"a":"` + strings.Repeat("x", 20000) + `"}}}`, ""},
		"a list without": {`{}`, "spec.images: Required"},
	} {
		t.Run(name, func(t *testing.T) {
			list := &v1beta1.ImageListPullJob{}
			if err := json.Unmarshal([]byte(`{"spec":`+c.spec+`}`), list); err != nil {
				t.Fatal(err)
			}
			list.Default()
			err := invalid(list)
			if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
