/* An agent for Java that asks for the events that jitscribe's asks for, and does nothing: what is left is HotSpot's own.
   With the option `ask` it asks for the name, the class, the file and the lines of each method it meets, once, as any agent has
   to that tells of them, and throws the answers away. */
#include <jvmti.h>
#include <jvmticmlr.h>
#include <stdint.h>
#include <string.h>

static int asks;

/* The methods that were asked for, of which none is forgotten: more than the bench has. */
static jmethodID known[1 << 14];

/* Whether a method is met for the first time. */
static int is_new(jmethodID method) {
    const size_t mask = sizeof known / sizeof *known - 1;
    size_t at = ((uintptr_t)method >> 3) * 0x9e3779b97f4a7c15 >> 40;
    for (; known[at & mask]; at++)
        if (known[at & mask] == method) return 0;
    known[at & mask] = method;
    return 1;
}

static void ask(jvmtiEnv *env, jmethodID method) {
    if (!is_new(method)) return;
    char *name = NULL, *signature = NULL, *file = NULL;
    jclass class;
    jint count;
    jvmtiLineNumberEntry *lines = NULL;
    (*env)->GetMethodName(env, method, &name, NULL, NULL);
    if (!(*env)->GetMethodDeclaringClass(env, method, &class)) {
        (*env)->GetClassSignature(env, class, &signature, NULL);
        (*env)->GetSourceFileName(env, class, &file);
    }
    (*env)->GetLineNumberTable(env, method, &count, &lines);
    void *answers[] = {name, signature, file, lines};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) (*env)->Deallocate(env, answers[i]);
}

static void JNICALL loaded(jvmtiEnv *env, jmethodID method, jint size, const void *code, jint count,
                           const jvmtiAddrLocationMap *map, const void *info) {
    (void)size, (void)code, (void)count, (void)map;
    if (!asks) return;
    ask(env, method);
    for (const jvmtiCompiledMethodLoadRecordHeader *record = info; record; record = record->next) {
        if (record->kind != JVMTI_CMLR_INLINE_INFO) continue;
        const jvmtiCompiledMethodLoadInlineRecord *inlined = (const void *)record;
        for (jint i = 0; i < inlined->numpcs; i++)
            for (jint frame = 0; frame < inlined->pcinfo[i].numstackframes; frame++)
                ask(env, inlined->pcinfo[i].methods[frame]);
    }
}

static void JNICALL unloaded(jvmtiEnv *env, jmethodID method, const void *code) {
    (void)env, (void)method, (void)code;
}

static void JNICALL generated(jvmtiEnv *env, const char *name, const void *code, jint length) {
    (void)env, (void)name, (void)code, (void)length;
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved) {
    (void)reserved;
    asks = options && !strcmp(options, "ask");
    /* So that no method waits for its memory. */
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) ((volatile jmethodID *)known)[i] = NULL;
    jvmtiEnv *env;
    if ((*vm)->GetEnv(vm, (void **)&env, JVMTI_VERSION_1_2) != JNI_OK) return JNI_ERR;
    jvmtiCapabilities wanted;
    memset(&wanted, 0, sizeof wanted);
    wanted.can_get_source_file_name = 1;
    wanted.can_get_line_numbers = 1;
    wanted.can_generate_compiled_method_load_events = 1;
    jvmtiEventCallbacks callbacks;
    memset(&callbacks, 0, sizeof callbacks);
    callbacks.CompiledMethodLoad = loaded;
    callbacks.CompiledMethodUnload = unloaded;
    callbacks.DynamicCodeGenerated = generated;
    if ((*env)->AddCapabilities(env, &wanted) || (*env)->SetEventCallbacks(env, &callbacks, sizeof callbacks))
        return JNI_ERR;
    for (jvmtiEvent event = JVMTI_EVENT_COMPILED_METHOD_LOAD; event <= JVMTI_EVENT_DYNAMIC_CODE_GENERATED; event++)
        if ((*env)->SetEventNotificationMode(env, JVMTI_ENABLE, event, NULL)) return JNI_ERR;
    return JNI_OK;
}
