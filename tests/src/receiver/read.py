"""Reads requests of OTLP with the official stubs: read.py FILE... Prints a list: for each file the IDs of its profiles, how
often each stack was sampled, the attributes of resources, the build-ids of mappings by their names, and the keys of functions by theirs; all that is known of
each sample, with how often it was and the sorted times; and how many rows of the dictionary nothing refers to."""

import collections, json, sys
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as service

TABLES = {"stack": "stack", "attribute": "attribute", "link": "link", "location": "location", "mapping": "mapping", "function": "function"}


def references(message):
    """The rows that a message, and those in it, refer to: their tables and numbers."""
    for field, value in message.ListFields():
        name, _, kind = field.name.rpartition("_")
        if kind in ("index", "indices") and name in TABLES:
            for index in value if kind == "indices" else [value]:
                yield TABLES[name], index
        elif kind == "strindex":
            yield "string", value
        elif field.message_type:
            for inner in [value] if hasattr(value, "ListFields") else value:
                yield from references(inner)


def known(words, sample, resource, profile):
    """All that is known of a sample, but how often it was and when."""
    text = lambda index: words.string_table[index]
    attributes = lambda row: [(text(it.key_strindex), it.value.SerializeToString().hex()) for it in (words.attribute_table[index] for index in row.attribute_indices)]

    def of_mapping(index):
        row = words.mapping_table[index]
        return [row.memory_start, row.memory_limit, text(row.filename_strindex), attributes(row)]

    def of_line(line):
        row = words.function_table[line.function_index]
        return [text(row.name_strindex), text(row.filename_strindex), row.start_line, line.line, line.column]

    places = [words.location_table[index] for index in words.stack_table[sample.stack_index].location_indices]
    types = [[text(of.type_strindex), text(of.unit_strindex)] for of in (profile.sample_type, profile.period_type)]
    whole = [resource.SerializeToString(deterministic=True).hex(), types, profile.period, profile.time_unix_nano, profile.duration_nano, attributes(profile), attributes(sample)]
    return json.dumps(whole + [[of_mapping(it.mapping_index), it.address, attributes(it), [of_line(line) for line in it.lines]] for it in places])


files = []
for name in sys.argv[1:]:
    request = service.ExportProfilesServiceRequest.FromString(open(name, "rb").read())
    words = request.dictionary
    text = lambda index: words.string_table[index]
    ids, stacks = [], collections.Counter()
    samples = collections.defaultdict(lambda: [0, []])
    referred = set(references(request))
    rows = {name: len(getattr(words, f"{name}_table")) for name in [*TABLES.values(), "string"]}
    unused = sum((name, index) not in referred for name, count in rows.items() for index in range(1, count))
    for resource in request.resource_profiles:
        for scope in resource.scope_profiles:
            for profile in scope.profiles:
                ids.append(profile.profile_id.hex())
                for sample in profile.samples:
                    places = [words.location_table[index] for index in words.stack_table[sample.stack_index].location_indices]
                    names = [text(words.function_table[line.function_index].name_strindex) for place in places for line in place.lines]
                    count = len(sample.timestamps_unix_nano) or sum(sample.values)
                    stacks[";".join(reversed(names))] += count
                    one = samples[known(words, sample, resource.resource, profile)]
                    one[0] += count
                    one[1] = sorted([*one[1], *sample.timestamps_unix_nano])
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
    files.append({"ids": ids, "stacks": stacks, "resources": resources, "build_ids": build_ids, "keys": keys, "samples": samples, "unused": unused})
print(json.dumps(files))
