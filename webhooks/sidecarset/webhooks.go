package sidecarset

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/sidecarsets"
	"github.com/kruisekit/kruisekit/sidecar"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

const (
	// MutatePath is where API servers expect the defaults.
	MutatePath = "/mutate-apps-kruise-io-sidecarset"
	// ValidatePath is where they expect the rules.
	ValidatePath = "/validate-apps-kruise-io-sidecarset"
	// DefaultNamespace is that of the manager.
	DefaultNamespace = kruise.DefaultNamespace
)

// Options of the webhooks. The zero value behaves as the reference does by default.
type Options struct {
	// Namespace of the manager: of revisions, of the ConfigMap kruise-configuration, and of dry runs that validate
	// containers. Default DefaultNamespace.
	Namespace string
	// AnyPodMetadata allows sets to write annotations without a rule in kruise-configuration.
	AnyPodMetadata bool
	// Cover requests that API servers send the pods of a set to their webhook before the set is stored, so that pods that
	// are created right after the set get its containers. It is called for admitted sets that select more than before, not
	// in a dry run. An error is a warning for the writer of the set. Nil is not called.
	Cover func(ctx context.Context, set *v1beta1.SidecarSet) error
	// Timeout of all calls of one admission. Default 8 seconds, which is less than the 10 seconds that API servers wait.
	Timeout time.Duration
}

// webhooks look up what the rules of SidecarSets need besides the set.
type webhooks struct {
	api     kinds.API
	sets    client.Reader
	options Options
}

type change = kinds.Change[*v1beta1.SidecarSet]

// New returns the webhooks. api reads past a cache: revisions, the base of a canary, and kruise-configuration by its
// name, each only where the set concerns them, and all sets before a conflict is reported. sets lists all sets,
// untyped: the cache of a manager is right for it, as its controllers and the webhook for pods keep all sets in it
// anyway. Two sets that are created within the lag of the cache do not see each other; if they clash, pods that both
// select are rejected, and the error names the two sets.
func New(api kinds.API, sets client.Reader, o Options) (kinds.Webhooks, error) {
	if sets == nil {
		return nil, errors.New("the webhooks of SidecarSet need a reader of sets")
	}
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	w := &webhooks{api: api, sets: sets, options: o}
	return kinds.New(api, kinds.Row[*v1beta1.SidecarSet]{
		Kind: v1beta1.GroupVersion.WithKind("SidecarSet"), Hub: &v1beta1.SidecarSet{}, Old: &v1alpha1.SidecarSet{},
		MutatePath: MutatePath, ValidatePath: ValidatePath, AdmitDeleting: true,
		Fill: w.fillParts, Complete: complete,
		Validate: sidecarsets.Validate, ValidateUpdate: sidecarsets.ValidateUpdate, Older: inOldVersion, Lookup: w.lookup,
	}, kinds.Options{Timeout: o.Timeout})
}

// complete fills in the defaults of the set itself, and the hashes, which are those of a set with all its defaults.
func complete(c change) {
	set := c.Now
	set.Default()
	for key, hashOf := range map[string]func(*v1beta1.SidecarSet) (string, error){
		kruise.SidecarSetHashKey: sidecar.Hash, kruise.SidecarSetHashWithoutImageKey: sidecar.HashWithoutImage,
	} {
		if hash, err := hashOf(set); err == nil { // a decoded set can be encoded
			metav1.SetMetaDataAnnotation(&set.ObjectMeta, key, hash)
		}
	}
}

// inOldVersion changes the paths of faults to those of v1alpha1.
func inOldVersion(old client.Object, faults field.ErrorList) field.ErrorList {
	set, isSet := old.(*v1alpha1.SidecarSet)
	for _, fault := range faults {
		below, ofNamespaces := strings.CutPrefix(fault.Field, "spec.namespaceSelector")
		switch {
		case ofNamespaces && isSet && set.Spec.Namespace != "" && (below == "" || strings.HasPrefix(below, ".matchLabels")):
			fault.Field = "spec.namespace"
		case fault.Field == "spec.customVersion":
			fault.Field = field.NewPath("metadata", "labels").Key(v1alpha1.SidecarSetCustomVersionLabel).String()
		}
	}
	return faults
}
