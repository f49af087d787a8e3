package look

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	"k8s.io/kubectl/pkg/cmd/get"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
)

// NewGet returns the command get of kubectl, with all as the kinds of kruise that the API server serves.
func NewGet(parent string, f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := get.NewCmdGet(parent, f, streams)
	cmd.ValidArgsFunction = completion.ResourceTypeAndNameCompletionFunc(f)
	kubectl := cmd.Run
	cmd.Run = nil
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 || args[0] != "all" {
			kubectl(cmd, args)
			return nil
		}
		client, err := f.ToDiscoveryClient()
		if err != nil {
			return err
		}
		lists, err := client.ServerPreferredResources()
		if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
			return err
		}
		all := Resources(lists)
		if len(all) == 0 {
			return fmt.Errorf("the API server serves no kind of %s", kinds.Apps)
		}
		kubectl(cmd, append([]string{strings.Join(all, ",")}, args[1:]...))
		return nil
	}
	return cmd
}

// Resources returns the resources of the kinds of kruise among those of a discovery, by name.
func Resources(lists []*metav1.APIResourceList) []string {
	var all []string
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || !kinds.IsOurs(schema.GroupKind{Group: version.Group}) {
			continue
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") && !strings.Contains(r.Name, "/") {
				all = append(all, r.Name+"."+version.Group)
			}
		}
	}
	slices.Sort(all)
	return all
}
