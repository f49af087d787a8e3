package resourcedistribution_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/test/storytest"
)

// A story is what happens to a distribution, the requests that follow, and the status after them.
func TestStories(t *testing.T) {
	const team = `"namespaceSelector":{"matchLabels":{"team":"web"}}`
	web := map[string]string{"team": "web"}
	type step struct {
		what string
		do   func(*model)
	}
	for name, story := range map[string][]step{
		"targets": {
			{"two of three namespaces match, and a third is listed", func(m *model) {
				m.namespace("cart", web)
				m.namespace("db", nil)
				m.namespace("kube-system", web)
				m.namespace("shop", web)
				m.distribute("registry", plain, team+`,"includedNamespaces":{"list":[{"name":"later"}]}`)
			}},
			{"a namespace gets the label", func(m *model) { m.namespace("db", web) }},
			{"the missing namespace comes", func(m *model) { m.namespace("later", nil) }},
			{"a namespace loses the label", func(m *model) { m.namespace("cart", nil) }},
			{"one is excluded", func(m *model) {
				m.distribute("registry", plain, team+`,"excludedNamespaces":{"list":[{"name":"db"}]}`)
			}},
			{"a namespace terminates", func(m *model) {
				now := metav1.NewTime(m.Clock)
				m.put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
					Name: "shop", Labels: web, DeletionTimestamp: &now, Finalizers: []string{"a/b"},
				}})
			}},
			{"there are no targets", func(m *model) { m.distribute("registry", plain, ``) }},
		},
		"conflict": {
			{"a foreign Secret has the name", func(m *model) {
				m.namespace("cart", web)
				m.namespace("shop", web)
				m.put(&corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pull"}, Data: map[string][]byte{"mine": nil},
				})
				m.distribute("registry", plain, team)
			}},
			{
				"another distribution of the same name comes",
				func(m *model) { m.distribute("second", plain, `"includedNamespaces":{"list":[{"name":"cart"}]}`) },
			},
			{"the foreign Secret is deleted", func(m *model) { m.remove("shop") }},
		},
		"content": {
			{"one namespace", func(m *model) {
				m.namespace("shop", nil)
				m.distribute("registry", plain, `"allNamespaces":true`)
			}},
			{"the content changes", func(m *model) {
				m.distribute("registry", strings.Replace(plain, "reader", "writer", 1), `"allNamespaces":true`)
			}},
			{"only its notation changes", func(m *model) {
				m.distribute("registry",
					`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull"},"type":"Opaque","data":{"user":"d3JpdGVy"}}`,
					`"allNamespaces":true`)
			}},
			{"a tenant edits the copy", func(m *model) { m.edit("shop", func(s *corev1.Secret) { s.Data["user"] = nil }) }},
			{
				"a tenant labels the copy",
				func(m *model) { m.edit("shop", func(s *corev1.Secret) { s.Labels = map[string]string{"theirs": "1"} }) },
			},
			{"a tenant deletes the copy", func(m *model) { m.remove("shop") }},
			{"the type changes", func(m *model) {
				m.distribute("registry",
					strings.Replace(plain, `"stringData"`, `"type":"example.com/x","stringData"`, 1), `"allNamespaces":true`)
			}},
			{
				"the spec becomes invalid",
				func(m *model) { m.distribute("registry", `{"apiVersion":"v1","kind":"Pod"}`, `"allNamespaces":true`) },
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t)
			told := &strings.Builder{}
			for _, s := range story {
				s.do(m)
				m.requests()
				fmt.Fprintf(told, "# %s\n", s.what)
				for range 2 { // the second pass is idle
					m.Reconcile()
					for _, r := range m.requests() {
						fmt.Fprintf(told, "    %s\n", r)
					}
				}
				fmt.Fprintf(told, "%s\n\n", m.picture("registry"))
				m.Advance(time.Second)
			}
			storytest.Compare(t, name, told.String())
		})
	}
}

// edit changes a copy as a tenant does.
func (m *model) edit(namespace string, change func(*corev1.Secret)) {
	m.Helper()
	s := m.secret(namespace)
	change(s)
	m.put(s)
}

func (m *model) remove(namespace string) {
	m.Helper()
	if err := m.Server.Delete(m.Context(), m.secret(namespace)); err != nil {
		m.Fatal(err)
	}
}
