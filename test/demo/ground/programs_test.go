package ground

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBuilds(t *testing.T) {
	installed := map[string]string{"etcd": "/a/etcd", "kube-apiserver": "/a/kube-apiserver", "kubectl": "/a/kubectl"}
	cases := map[string]struct {
		kubectl   bool
		installed map[string]string
		want      []string
	}{
		"the demo alone needs no kubectl, no scheduler and no kubelet": {
			false, nil, []string{"etcd", "kube-apiserver", "kube-controllers"},
		},
		"a reader who keeps the cluster gets a kubectl": {
			true, nil, []string{"etcd", "kube-apiserver", "kube-controllers", "kubectl"},
		},
		"what setup-envtest has installed is not built, and it has no controllers": {
			false, installed, []string{"kube-controllers"},
		},
		"the kubectl of setup-envtest serves the reader, too": {
			true, installed, []string{"kube-controllers"},
		},
		"a kube-controller-manager has the controllers": {
			false, map[string]string{"kube-controller-manager": "/b"}, []string{"etcd", "kube-apiserver"},
		},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			got, err := builds(c.kubectl, c.installed)
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
