//go:build envtest

package webhooks_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kruisekit/kruisekit/test/rig/reviewtest"
)

func imagePulls() []entry {
	const tag = `{"tag":"1","pullPolicy":{"ttlSecondsAfterFinished":5}}`
	steps := []string{"1-created", "2-updating", "3-updated"}
	const off = "feature gate KruiseDaemon is off"
	return []entry{
		{Kind: reviewtest.Kind{
			Name: "ImagePullJob", Policy: "imagepull", Spec: as(`{"image":"a","completionPolicy":{}}`), Recorded: steps,
			Bad: `{"parallelism":"50%"}`, Code: 400, At: []string{"spec.parallelism"},
			Reworded: map[string]string{"no completion policy": ""},
		}, policy: reviewPullJobs, closed: 403, text: off, worse: `{"parallelism":"60%"}`, faulty: []string{
			`{"parallelism":"50%"}`, `{"image":""}`, `{"completionPolicy":{"type":"Soon"}}`,
			`{"completionPolicy":{"type":"Never","activeDeadlineSeconds":700}}`,
			`{"completionPolicy":{"type":"Never","ttlSecondsAfterFinished":7}}`,
			`{"completionPolicy":{"activeDeadlineSeconds":5}}`, `{"selector":{},"podSelector":{}}`,
			`{"selector":{"names":["n"],"matchLabels":{"a":"b"}}}`,
		}},
		{Kind: reviewtest.Kind{
			Name: "ImageListPullJob", Policy: "imagepull", Spec: as(`{"images":["a"],"completionPolicy":{}}`), Recorded: steps,
			Bad: `{"images":["a","B",""],"parallelism":"50%"}`, Code: 400,
			At: []string{"spec.images[1]", "spec.images[2]", "spec.parallelism"},
		}, policy: reviewPullLists, closed: 403, text: off, faulty: []string{
			`{"images":[]}`, `{"images":["a","a"]}`, `{"images":[` + images(300) + `]}`,
		}},
		{Kind: reviewtest.Kind{
			Name: "NodeImage", Cluster: true, Recorded: steps, Spec: as(`{"images":{"n":{"tags":[` + tag + `]}}}`),
			Bad: `{"images":{"n":{"tags":[` + tag + "," + tag + `]}}}`, Code: 400, At: []string{"spec.images[n].tags[1].tag"},
		}, closed: 403, text: off},
	}
}

// images are n in quotes.
func images(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`"app:%d"`, i)
	}
	return strings.Join(all, ",")
}

func reviewPullJobs(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) {
	const end = "spec.completionPolicy."
	cases := map[string]reviewtest.Creation{
		"no image":    {Patch: `{"image":""}`, Want: "spec.image"},
		"no end":      {Patch: `{"completionPolicy":{"type":""}}`},
		"unknown end": {Patch: `{"completionPolicy":{"type":"Soon"}}`, Want: end + "type"},
		"never, deadline": {
			Patch: `{"completionPolicy":{"type":"Never","activeDeadlineSeconds":700}}`, Want: end + "activeDeadlineSeconds",
		},
		"deadline":        {Patch: `{"completionPolicy":{"activeDeadlineSeconds":600}}`},
		"shorter timeout": {Patch: `{"completionPolicy":{"activeDeadlineSeconds":5},"pullPolicy":{"timeoutSeconds":5}}`},
		"nodes or pods":   {Patch: `{"selector":{},"podSelector":{}}`, Want: "spec.selector"},
		"names or labels": {Patch: `{"selector":{"names":["n"],"matchLabels":{"a":"b"}}}`, Want: "spec.selector.names"},
		"names or terms": {
			Patch: `{"selector":{"names":["n"],"matchExpressions":[{"key":"a","operator":"Exists"}]}}`,
			Want:  "spec.selector.names",
		},
		"names, empty labels": {Patch: `{"selector":{"names":["n"],"matchLabels":{},"matchExpressions":[]}}`},
	}
	for _, good := range []string{`4`, `0`, `"4"`, `"0"`, `"+4"`, `"-0"`} {
		cases["parallelism "+good] = reviewtest.Creation{Patch: `{"parallelism":` + good + `}`}
	}
	for _, bad := range []string{`-1`, `"-1"`, `"50%"`, `"abc"`, `""`, `"4 "`} {
		cases["parallelism "+bad] = reviewtest.Creation{Patch: `{"parallelism":` + bad + `}`, Want: "spec.parallelism"}
	}
	k.Creations(t, g, k.PolicyName(), cases)
	k.With(`{"pullSecrets":["s"]}`).Updates(t, g, k.PolicyName(), map[string]reviewtest.Update{
		"secrets":         {Field: "pullSecrets", Value: []any{"t"}, Want: "spec.pullSecrets is immutable"},
		"no more secrets": {Field: "pullSecrets", Value: []any{}, Want: "spec.pullSecrets is immutable"},
		"image":           {Field: "image", Value: "b"},
	})
	k.Updates(t, g, k.PolicyName(), map[string]reviewtest.Update{
		"no secrets still": {Field: "pullSecrets", Value: []any{}},
	})
}

func reviewPullLists(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) {
	const end = "spec.completionPolicy."
	k.Creations(t, g, k.PolicyName(), map[string]reviewtest.Creation{
		"no images":       {Patch: `{"images":[]}`, Want: "spec.images"},
		"many images":     {Patch: `{"images":[` + images(255) + `]}`},
		"too many images": {Patch: `{"images":[` + images(256) + `]}`, Want: "spec.images"},
		"same image":      {Patch: `{"images":["a","b","a"]}`, Want: "spec.images"},
		"never":           {Patch: `{"completionPolicy":{"type":"Never"}}`},
		"never, ttl": {
			Patch: `{"completionPolicy":{"type":"Never","ttlSecondsAfterFinished":7}}`, Want: end + "ttlSecondsAfterFinished",
		},
		"short deadline": {Patch: `{"completionPolicy":{"activeDeadlineSeconds":599}}`, Want: end + "activeDeadlineSeconds"},
	})
	k.With(`{"pullSecrets":["s"]}`).Updates(t, g, k.PolicyName(),
		map[string]reviewtest.Update{"secrets": {Field: "pullSecrets", Value: []any{"t"}}})
}
