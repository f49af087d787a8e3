package sidecarset_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/webhooks/sidecarset"
)

// TestCover: sets that are let in and select more than before are covered; a failure is a warning, and rejects none.
func TestCover(t *testing.T) {
	const other = `{"selector":{"matchLabels":{"app":"y"}}}`
	cases := map[string]struct {
		why, version, now, stored string
		dry                       bool
		fails                     error
		asked, allowed            bool
	}{
		"new":              {"its pods may come at once", "v1beta1", `{}`, "", false, nil, true, true},
		"new, old version": {"it is the same set", "v1alpha1", `{}`, "", false, nil, true, true},
		"tried":            {"nothing is created", "v1beta1", `{}`, "", true, nil, false, true},
		"refused":          {"it will not be there", "v1beta1", `{"customVersion":"a b"}`, "", false, nil, false, false},
		"paused": {
			why: "it selects nothing", version: "v1beta1", now: `{"injectionStrategy":{"paused":true}}`, allowed: true,
		},
		"other pods":    {"they may come at once", "v1beta1", `{}`, other, false, nil, true, true},
		"the same pods": {"they are covered", "v1beta1", `{"revisionHistoryLimit":1}`, `{}`, false, nil, false, true},
		"not possible": {
			why:     "the set is worth more than its first pods",
			version: "v1beta1",
			now:     `{}`,
			fails:   errors.New("no way"),
			asked:   true,
			allowed: true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var asked []string
			w := newWebhooks(t, &plainServer{},
				sidecarset.Options{Cover: func(_ context.Context, set *appsv1beta1.SidecarSet) error {
					asked = append(asked, set.Name)
					return c.fails
				}})
			before := ""
			if c.stored != "" {
				before = object(t, c.version, c.stored)
			}
			r := newRequest(c.version, object(t, c.version, c.now), before)
			r.DryRun = ptr.To(c.dry)
			answer := w[sidecarset.ValidatePath](t.Context(), r)
			if answer.Allowed != c.allowed || (len(asked) == 1) != c.asked || len(asked) > 1 {
				t.Errorf("%s: asked about %q, allowed %t: %v", c.why, asked, answer.Allowed, answer.Result)
			}
			warned := strings.Contains(strings.Join(answer.Warnings, " "), "may go without these sidecars: no way")
			if warned != (c.fails != nil) {
				t.Errorf("%s: warnings %q", c.why, answer.Warnings)
			}
		})
	}
}
