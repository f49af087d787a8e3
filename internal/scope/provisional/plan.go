package provisional

import (
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/write"
)

type configuration = admissionregistrationv1.MutatingWebhookConfiguration

// fitting returns the requests that there is room for, the first ones first: those that replace an entry, and those for
// which the configuration stays within the bound.
func fitting(have *configuration, batch []*request) []*request {
	names := map[string]bool{}
	for i := range have.Webhooks {
		names[have.Webhooks[i].Name] = true
	}
	var chosen []*request
	for _, r := range batch {
		if names[r.entry.Name] || len(names) < most {
			names[r.entry.Name] = true
			chosen = append(chosen, r)
		}
	}
	return chosen
}

// plan returns the write that adds the entries of requests, one for each set. Have is without a version where it does
// not exist.
func plan(name string, have *configuration, chosen []*request, ca []byte) *write.Write {
	at := map[string]int{}
	for i := range have.Webhooks {
		at[have.Webhooks[i].Name] = i
	}
	entries := latest(chosen)
	for i := range entries {
		entries[i].ClientConfig.CABundle = ca
	}
	if have.ResourceVersion == "" {
		return &write.Write{
			Verb: write.Create, Object: &configuration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: entries},
		}
	}
	ops := []write.Op{write.Test("/metadata/resourceVersion", have.ResourceVersion)}
	if len(have.Webhooks) == 0 {
		ops = append(ops, write.Add("/webhooks", []string{}))
	}
	for _, e := range entries {
		if i, found := at[e.Name]; found {
			ops = append(ops, write.Replace(fmt.Sprintf("/webhooks/%d", i), e))
			continue
		}
		ops = append(ops, write.Add("/webhooks/-", e))
	}
	return write.JSON(have, write.Main, ops...)
}

// latest returns copies of the entries of a batch, one for each set.
func latest(batch []*request) []admissionregistrationv1.MutatingWebhook {
	var all []admissionregistrationv1.MutatingWebhook
	for _, r := range batch {
		all = slices.DeleteFunc(all, func(e admissionregistrationv1.MutatingWebhook) bool { return e.Name == r.entry.Name })
		all = append(all, *r.entry.DeepCopy())
	}
	return all
}
