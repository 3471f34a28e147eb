Counts sixteen million times
-[
  >-[
    >-[>+<-]
  <-]
<-]
and again with more work each time
-[
  >-[
    >-[
      >+>+
      <<-]
  <-]
<-]
and says so
>>>>>>++++++++[>++++++++<-]>+.
[-]++++++++++.
