"""At most c records of each unit: which ones enter, and the stage that leaves out the others."""
