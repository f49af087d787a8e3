package process

import (
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// A node that is taken over must not be a way into the others: the daemon writes status and events alone, and sees the
// secrets of one namespace, by name.
func TestRights(t *testing.T) {
	content, err := os.ReadFile("../../../config/daemon/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				reads := !slices.ContainsFunc(rule.Verbs, func(verb string) bool {
					return !slices.Contains([]string{"get", "list", "watch"}, verb)
				})
				switch {
				case resource == "secrets" &&
					(role.Kind != "Role" || role.Namespace != "kruise-daemon-config" || !slices.Equal(rule.Verbs, []string{"get"})):
					t.Errorf("%s %s may %q secrets", role.Kind, role.Namespace, rule.Verbs)
				case !reads && resource != "events" && !strings.HasSuffix(resource, "/status"):
					t.Errorf("%s may %q %s", role.Kind, rule.Verbs, resource)
				case strings.Contains(resource, "*") || slices.Contains(rule.Verbs, "*") || slices.Contains(rule.Verbs, "delete"):
					t.Errorf("%s may %q %s", role.Kind, rule.Verbs, resource)
				}
			}
		}
	}
}
