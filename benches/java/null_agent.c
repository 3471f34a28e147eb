/* An agent for Java that asks for what jitscribe's asks for, and does nothing: what is left is HotSpot's own. */
#include <jvmti.h>
#include <string.h>

static void JNICALL loaded(jvmtiEnv *env, jmethodID method, jint size, const void *code, jint count,
                           const jvmtiAddrLocationMap *map, const void *info) {
    (void)env, (void)method, (void)size, (void)code, (void)count, (void)map, (void)info;
}

static void JNICALL unloaded(jvmtiEnv *env, jmethodID method, const void *code) {
    (void)env, (void)method, (void)code;
}

static void JNICALL generated(jvmtiEnv *env, const char *name, const void *code, jint length) {
    (void)env, (void)name, (void)code, (void)length;
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved) {
    (void)options, (void)reserved;
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
