package operate

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
	"github.com/kruisekit/kruisekit/protection"
	"github.com/kruisekit/kruisekit/write"
)

// NewProtect returns the commands protect and unprotect.
func NewProtect(f cmdutil.Factory, streams genericiooptions.IOStreams) []*cobra.Command {
	var cascading bool
	protect := &cobra.Command{
		Use:   "protect (TYPE NAME | TYPE/NAME)",
		Short: "Protect objects from deletion",
		Example: "  # Refuse to delete the namespace prod while it has pods\n" +
			"  kubectl kruise protect namespace/prod --cascading",
		RunE: func(cmd *cobra.Command, args []string) error {
			value := kruise.DeletionProtectionTypeAlways
			if cascading {
				value = kruise.DeletionProtectionTypeCascading
			}
			c := target.Command{Command: cmd, IOStreams: streams, Factory: f}
			return patchEach(c, args, "protected", func(o *unstructured.Unstructured) ([]write.Op, error) {
				return Protect(o, value)
			})
		},
	}
	protect.Flags().BoolVar(&cascading, "cascading", false, "Refuse the deletion only while the object has dependents")
	unprotect := &cobra.Command{
		Use:   "unprotect (TYPE NAME | TYPE/NAME)",
		Short: "End the protection of objects from deletion",
		RunE: func(cmd *cobra.Command, args []string) error {
			c := target.Command{Command: cmd, IOStreams: streams, Factory: f}
			return patchEach(c, args, "unprotected", func(o *unstructured.Unstructured) ([]write.Op, error) {
				return Protect(o, "")
			})
		},
	}
	for _, cmd := range []*cobra.Command{protect, unprotect} {
		cmdutil.AddFilenameOptionFlags(cmd, &resource.FilenameOptions{}, "identifying the resource to get from a server.")
		cmdutil.AddDryRunFlag(cmd)
		selector := ""
		cmdutil.AddLabelSelectorFlagVar(cmd, &selector)
	}
	return []*cobra.Command{protect, unprotect}
}

// Protect returns the operations that give an object a protection: an empty value ends the protection.
func Protect(o *unstructured.Unstructured, value kruise.DeletionProtectionType) ([]write.Op, error) {
	group := o.GroupVersionKind().GroupKind()
	kind, known := protection.KindOf(group.Group, group.Kind)
	switch {
	case !known:
		return nil, fmt.Errorf("%s cannot be protected", group)
	case value == kruise.DeletionProtectionTypeCascading && len(kind.Dependents) == 0:
		return nil, fmt.Errorf("%s has no dependents: --cascading would protect nothing", group)
	case o.GetLabels()[kruise.DeletionProtectionKey] == string(value):
		return nil, nil
	}
	changed := map[string]*string{kruise.DeletionProtectionKey: nil}
	if value != "" {
		text := string(value)
		changed[kruise.DeletionProtectionKey] = &text
	}
	return write.SetLabels(o, changed), nil
}

// patchEach patches the objects that arguments name, and goes on after a failure.
func patchEach(
	c target.Command, args []string, operation string, decide func(*unstructured.Unstructured) ([]write.Op, error),
) error {
	objects, err := c.Find(args)
	if err != nil {
		return err
	}
	var errs []error
	for _, o := range objects {
		patched := o.Unstructured
		ops, err := decide(o.Unstructured)
		if err == nil && len(ops) > 0 {
			patched, err = c.Patch(o, ops, "")
		}
		if err == nil {
			err = c.Print(patched, operation)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
