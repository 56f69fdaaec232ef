package structured

// Runs the table of the allocator's own tests, and writes what each case gives to the allocator and
// what the allocator answers: a JSON file for each case, named after the case, into the folder
// $CASES. The build lays this file beside the package's sources (tests/cluster/allocator_cases.sh).

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured/internal"
	"k8s.io/dynamic-resource-allocation/structured/internal/allocatortesting"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

type allocatorCase struct {
	Features  []string                       `json:"features"`
	Classes   []*resourceapi.DeviceClass     `json:"classes"`
	Slices    []*resourceapi.ResourceSlice   `json:"slices"`
	InUse     []string                       `json:"inUse"`
	Shares    map[string]map[string]string   `json:"shares"`
	Node      *v1.Node                       `json:"node"`
	Claims    []*resourceapi.ResourceClaim   `json:"claims"`
	Cancelled bool                           `json:"cancelled"`
	Results   []resourceapi.AllocationResult `json:"results"`
	Error     string                         `json:"error"`
}

type recorder struct {
	internal.Allocator
	file  string
	given allocatorCase
}

func (r *recorder) Allocate(ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error) {
	out := r.given
	out.Node, out.Claims, out.Cancelled = node, claims, ctx.Err() != nil
	results, err := r.Allocator.Allocate(ctx, node, claims)
	out.Results = results
	if err != nil {
		out.Error = "failed: " + err.Error()
	}
	text, broken := json.MarshalIndent(out, "", " ")
	if broken == nil {
		broken = os.WriteFile(r.file, text, 0o644)
	}
	if broken != nil {
		panic(broken)
	}
	return results, err
}

func (r *recorder) GetStats() internal.Stats {
	if counting, ok := r.Allocator.(internal.AllocatorExtended); ok {
		return counting.GetStats()
	}
	return internal.Stats{}
}

// The logger of a test's context knows the test.
func nameOf(ctx context.Context) string {
	return klog.FromContext(ctx).GetSink().(ktesting.Underlier).GetUnderlying().(testing.TB).Name()
}

func sharesOf(state AllocatedState) map[string]map[string]string {
	shares := map[string]map[string]string{}
	for id := range state.AllocatedSharedDeviceIDs {
		shares[id.GetDeviceID().String()] = map[string]string{}
	}
	for id, consumed := range state.AggregatedCapacity {
		amounts := map[string]string{}
		for name, amount := range consumed {
			amounts[string(name)] = amount.String()
		}
		shares[id.String()] = amounts
	}
	return shares
}

func TestExport(t *testing.T) {
	allocatortesting.TestAllocator(t, internal.FeaturesAll,
		func(ctx context.Context, features Features, state AllocatedState, classes DeviceClassLister,
			published []*resourceapi.ResourceSlice, cache *cel.Cache) (allocatortesting.Allocator, error) {
			allocator, err := NewAllocator(ctx, features, state, classes, published, cache)
			if err != nil {
				return nil, err
			}
			name := strings.ReplaceAll(strings.TrimPrefix(nameOf(ctx), "TestExport/"), "/", "-")
			r := &recorder{Allocator: allocator.(internal.Allocator), file: filepath.Join(os.Getenv("CASES"), name+".json")}
			r.given.Features = slices.Sorted(maps.Keys(features.Set()))
			r.given.Slices = published
			r.given.Classes, _ = classes.List()
			r.given.InUse = []string{}
			for id := range state.AllocatedDevices {
				r.given.InUse = append(r.given.InUse, id.String())
			}
			r.given.Shares = sharesOf(state)
			return r, nil
		})
}
