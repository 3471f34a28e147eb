"""Reads requests of OTLP with the official stubs: read.py FILE... Prints a list: for each file the IDs of its profiles, how
often each stack was sampled, the attributes of resources, the build-ids of mappings by their names, and the keys of functions by theirs."""

import collections, json, sys
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as service

files = []
for name in sys.argv[1:]:
    request = service.ExportProfilesServiceRequest.FromString(open(name, "rb").read())
    words = request.dictionary
    text = lambda index: words.string_table[index]
    ids, stacks = [], collections.Counter()
    for resource in request.resource_profiles:
        for scope in resource.scope_profiles:
            for profile in scope.profiles:
                ids.append(profile.profile_id.hex())
                for sample in profile.samples:
                    places = [words.location_table[index] for index in words.stack_table[sample.stack_index].location_indices]
                    names = [text(words.function_table[line.function_index].name_strindex) for place in places for line in place.lines]
                    stacks[";".join(reversed(names))] += len(sample.timestamps_unix_nano) or sum(sample.values)
    resources = [{each.key: each.value.string_value for each in resource.resource.attributes} for resource in request.resource_profiles]
    attributes = lambda row: [(text(it.key_strindex), it.value) for it in (words.attribute_table[index] for index in row.attribute_indices)]
    build_ids = {text(row.filename_strindex): value.string_value for row in words.mapping_table for key, value in attributes(row) if key == "process.executable.build_id.gnu"}
    keys = collections.defaultdict(set)
    for row in words.location_table:
        for key, value in attributes(row):
            if key == "code.function.key":
                # A key for each line.
                for line, one in zip(row.lines, value.array_value.values, strict=True):
                    keys[text(words.function_table[line.function_index].name_strindex)].add(one.string_value)
    keys = {name: sorted(values) for name, values in keys.items()}
    files.append({"ids": ids, "stacks": stacks, "resources": resources, "build_ids": build_ids, "keys": keys})
print(json.dumps(files))
